/** What the [Install] sections of a unit and its drop-ins ask for, before specifiers are replaced. */
export interface InstallSection {
  readonly aliases: readonly string[];
  readonly wantedBy: readonly string[];
  readonly requiredBy: readonly string[];
  readonly upheldBy: readonly string[];
  readonly also: readonly AlsoUnit[];
  /** Every one that is assigned; the last counts, and an empty one for none. */
  readonly defaultInstances: readonly string[];
}

/** A unit that Also= names. */
interface AlsoUnit {
  readonly name: string;
  /**
   * What was assigned before it: systemd replaces specifiers of Also= as it reads it, and of the others when all is
   * read.
   */
  readonly defaultInstance: string;
}

type ListKey = Exclude<keyof InstallSection, 'defaultInstances' | 'also'>;

/** Names of sections and settings are case-sensitive (systemd.syntax(7)). */
const LISTS: Readonly<Record<string, ListKey>> = {
  Alias: 'aliases',
  WantedBy: 'wantedBy',
  RequiredBy: 'requiredBy',
  UpheldBy: 'upheldBy',
};

/**
 * Reads [Install] as systemd does (systemd.syntax(7)): every assignment adds to a list, an empty one clears it, but for
 * Also=, which systemd's reader never clears (src/shared/install.c, `config_parse_also`).
 *
 * @param texts of a unit and its drop-ins, in the order in which systemd reads them.
 */
export function readInstallSection(texts: readonly string[]): InstallSection {
  const lists: Record<ListKey, string[]> = { aliases: [], wantedBy: [], requiredBy: [], upheldBy: [] };
  const also: AlsoUnit[] = [];
  const defaultInstances: string[] = [];
  for (const { name, value } of texts.flatMap(installSettings)) {
    const key = LISTS[name];
    if (name === 'DefaultInstance') defaultInstances.push(value);
    if (name === 'Also') {
      const defaultInstance = defaultInstances.at(-1) ?? '';
      const names = value.split(/[ \t]+/).filter((word) => word !== '');
      also.push(...names.map((each) => ({ name: each, defaultInstance })));
    }
    if (key !== undefined) lists[key] = value === '' ? [] : [...lists[key], ...wordsOf(value)];
  }
  return { ...lists, also, defaultInstances };
}

interface Setting {
  readonly name: string;
  readonly value: string;
}

function installSettings(text: string): Setting[] {
  const settings: Setting[] = [];
  let section = '';
  for (const line of logicalLines(text)) {
    const header = /^\[(.*)\]$/.exec(line)?.[1];
    if (header !== undefined) section = header;
    else if (section === 'Install' && line.includes('=')) {
      const equals = line.indexOf('=');
      settings.push({ name: line.slice(0, equals).trimEnd(), value: line.slice(equals + 1).trimStart() });
    }
  }
  return settings;
}

/**
 * Lines with those joined that an odd number of backslashes ends, each backslash before a line's end as a space; a
 * comment between them is skipped (systemd.syntax(7)).
 */
function logicalLines(text: string): string[] {
  const lines: string[] = [];
  let begun = '';
  for (const line of text.replace(/^\uFEFF/, '').split(/\r\n|\n\r|[\n\r\0]/)) {
    const start = line.replace(/^[ \t]+/, '');
    if (start.startsWith('#') || start.startsWith(';')) continue;
    const joined = begun + start;
    if (isContinued(joined)) {
      begun = `${joined.slice(0, -1)} `;
      continue;
    }
    lines.push(joined.trim());
    begun = '';
  }
  return [...lines, begun.trim()];
}

function isContinued(line: string): boolean {
  let backslashes = 0;
  while (line.at(-1 - backslashes) === '\\') backslashes += 1;
  return backslashes % 2 === 1;
}

/** A value's words, quotes read as systemd.syntax(7), "Quoting" has it, up to one that is not closed. */
function wordsOf(value: string): string[] {
  const words: string[] = [];
  let rest = value.trimStart();
  while (rest !== '') {
    const word = /^(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')+(?=\s|$)/.exec(rest)?.[0];
    if (word === undefined) break;
    words.push(
      word.replaceAll(
        /"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'/g,
        (_all, a?: string, b?: string) => a ?? b ?? '',
      ),
    );
    rest = rest.slice(word.length).trimStart();
  }
  return words;
}
