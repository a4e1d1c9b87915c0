/**
 * A Containerfile as its instructions, by the rules of Buildah's and BuildKit's parsers (openshift/imagebuilder,
 * dockerfile/parser): continued lines, which comments and empty lines don't end, and here-documents, whose text has no
 * instructions of the Containerfile.
 *
 * @returns the text of each instruction, and comments and empty lines by themselves: joined by line ends, they are the
 *   whole again.
 */
export function instructionsOf(containerfile: string): readonly string[] {
  const lines = containerfile.split('\n');
  const continued = /^#[ \t]*escape[ \t]*=[ \t]*`/i.test(containerfile) ? /`[ \t\r]*$/ : /\\[ \t\r]*$/;
  const instructions: string[] = [];
  while (lines.length > 0) {
    const own = [lines.shift() ?? ''];
    if (!isSkipped(own[0] ?? '')) {
      let continues = continued.test(own[0] ?? '');
      while (continues && lines.length > 0) {
        const line = lines.shift() ?? '';
        own.push(line);
        continues = isSkipped(line) || continued.test(line);
      }
      own.push(...hereDocuments(own.join('\n'), lines));
    }
    instructions.push(own.join('\n'));
  }
  return instructions;
}

function isSkipped(line: string): boolean {
  return /^\s*(?:#|$)/.test(line);
}

/** A word of its own, perhaps behind the number of a file descriptor. */
const HEREDOC = /(?<=\s)\d*<<-?(["']?)([^\s"'<>|&;()]+)\1/g;

function hereDocuments(instruction: string, rest: string[]): readonly string[] {
  if (!/^\s*(?:ONBUILD\s+)?(?:RUN|COPY|ADD)\s/i.test(instruction)) return [];
  return [...instruction.matchAll(HEREDOC)].flatMap(([, , end = '']) => {
    const last = rest.findIndex((line) => line.trim() === end);
    return rest.splice(0, last < 0 ? rest.length : last + 1);
  });
}

/** What an instruction can't do without, as in MCO (buildrequest, instructionRequirements); undefined for nothing. */
const INSTRUCTIONS: ReadonlyMap<string, string | undefined> = new Map([
  ['ADD', 'sources and a destination'],
  ['ARG', 'the name of a variable'],
  ['CMD', 'a command or arguments'],
  ['COPY', 'sources and a destination'],
  ['ENTRYPOINT', 'a command or arguments'],
  ['ENV', 'names and values'],
  ['EXPOSE', 'a port'],
  ['FROM', 'a base image'],
  ['HEALTHCHECK', undefined],
  ['LABEL', 'names and values'],
  ['MAINTAINER', undefined],
  ['ONBUILD', 'an instruction'],
  ['RUN', 'a command'],
  ['SHELL', 'the words of a shell'],
  ['STOPSIGNAL', 'a signal'],
  ['USER', 'the name or id of a user'],
  ['VOLUME', 'a mount point'],
  ['WORKDIR', 'a directory'],
]);

/**
 * @param containerfile a user's own; it needs no FROM, because it continues the generated part.
 * @returns the first instruction that no engine knows, or that lacks what it needs, with its line; undefined for none.
 */
export function containerfileProblem(containerfile: string): string | undefined {
  let line = 1;
  for (const text of instructionsOf(containerfile)) {
    const [word = ''] = /^\S+/.exec(text.trimStart()) ?? [];
    const rest = text.trimStart().slice(word.length);
    const name = word.toUpperCase();
    if (!isSkipped(text) && !INSTRUCTIONS.has(name)) {
      return `line ${line}: ${JSON.stringify(word.slice(0, 50))} is no instruction; expected such as RUN or COPY`;
    }
    const needed = INSTRUCTIONS.get(name);
    if (needed !== undefined && rest.replace(/(?<=\s)--\S+/g, '').replace(/[\\`\s]/g, '') === '') {
      return `line ${line}: ${name} has nothing after it; expected ${needed}`;
    }
    line += text.split('\n').length;
  }
  return undefined;
}
