/** One command of a script, as a shell would start it: without assignments before it and redirections. */
export type SimpleCommand = readonly string[];

const HERE_DOCUMENT = /<<-?\s*(['"]?)(\w+)\1[^\n]*\n[\s\S]*?^\s*\2$/gm;
/** A quoted string, a continued line, a comment, what separates commands, a redirection, a word. */
const TOKEN =
  /\\\n|(?<=^|\s)#[^\n]*|(?<separator>\|\|?|&&?|;|\n)|(?<redirection>\d*[<>]+&?\s*[^\s|;&]*)|(?<word>(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"|&;<>\\])+)/g;
/** Commands that run another, and how many of their own words stand between. */
const RUNNERS: Readonly<Record<string, number>> = { sudo: 0, time: 0, exec: 0, timeout: 1 };

/**
 * @param script for a shell; functions and loops are none that documentation needs.
 * @returns its simple commands in order, those in `$( )` after the one that they are in.
 */
export function simpleCommands(script: string): SimpleCommand[] {
  const inner: string[] = [];
  const outer = script.replaceAll(HERE_DOCUMENT, '').replaceAll(/\$\(([^()]*)\)/g, (_, text: string) => {
    inner.push(text);
    return 'substituted';
  });
  const commands: string[][] = [[]];
  for (const { groups } of outer.matchAll(TOKEN)) {
    if (groups?.['separator'] !== undefined) commands.push([]);
    else if (groups?.['word'] !== undefined) commands.at(-1)?.push(unquoted(groups['word']));
  }
  return [...commands.map(started).filter((words) => words.length > 0), ...inner.flatMap(simpleCommands)];
}

function unquoted(word: string): string {
  return word.replaceAll(/'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)/g, (_, single, double, escaped) =>
    String(single ?? double ?? escaped),
  );
}

function started(words: readonly string[]): readonly string[] {
  const start = words.findIndex((word) => !/^\w+=/.test(word));
  const command = start < 0 ? [] : words.slice(start);
  const skipped = RUNNERS[command[0] ?? ''];
  return skipped === undefined ? command : started(command.slice(1 + skipped));
}
