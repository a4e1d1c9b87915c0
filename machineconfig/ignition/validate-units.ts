import { quote } from '../problem.ts';
import type { Dropin, Unit } from './config.ts';
import type { Report } from './report.ts';

const UNIT_TYPES = 'service|socket|device|mount|automount|swap|target|path|timer|snapshot|slice|scope';
/** systemd.unit(5): the characters of a unit name; among them no slash, so that a unit stays in its directory. */
const UNIT_NAME = new RegExp(`^[A-Za-z0-9:_.\\\\@-]+\\.(${UNIT_TYPES})$`);
const UNIT_NAME_MAX = 255;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are exactly what must not be there
const DROPIN_NAME = /^[^/\x00-\x1f\x7f]+\.conf$/;

/** @returns where the units and drop-ins that have contents are written. */
export function unitFilePaths(units: readonly Unit[]): ReadonlySet<string> {
  const paths = new Set<string>();
  for (const unit of units) {
    const path = `/etc/systemd/system/${unit.name}`;
    if ((unit.contents ?? '') !== '') {
      paths.add(path);
    }
    for (const dropin of unit.dropins ?? []) {
      if ((dropin.contents ?? '') !== '') {
        paths.add(`${path}.d/${dropin.name}`);
      }
    }
  }
  return paths;
}

/** Checks names, syntax and [Install] sections of units, and the same of their drop-ins. */
export function checkUnits(units: readonly Unit[], report: Report): void {
  for (const [index, unit] of units.entries()) {
    const path = `$.systemd.units[${index}]`;
    if (unit.name !== '' && (!UNIT_NAME.test(unit.name) || unit.name.length > UNIT_NAME_MAX)) {
      report.problem(
        `${path}.name`,
        `${quote(unit.name)} is not a unit name`,
        `letters, digits, : _ . \\ @ - and one of the suffixes .${UNIT_TYPES.replaceAll('|', ', .')}`,
      );
    }
    checkContents(unit, path, report);
    const dropins = unit.dropins ?? [];
    for (const [dropinIndex, dropin] of dropins.entries()) {
      checkDropin(dropin, `${path}.dropins[${dropinIndex}]`, report);
    }
    report.duplicates([[`${path}.dropins`, dropins.map((dropin) => dropin.name)]]);
  }
  report.duplicates([['$.systemd.units', units.map((unit) => unit.name)]]);
}

function checkContents(unit: Unit, path: string, report: Report): void {
  const { contents = '', dropins = [] } = unit;
  const { problem } = parseUnitSyntax(contents);
  if (problem !== undefined) {
    report.problem(`${path}.contents`, problem, 'the syntax of systemd.syntax(7)');
  } else if (unit.enabled === true && contents !== '' && ![unit, ...dropins].some(hasInstallSection)) {
    report.warning(`${path}.contents`, 'has no [Install] section, so enabling does nothing', '[Install]');
  }
}

function hasInstallSection({ contents = '' }: { readonly contents?: string }): boolean {
  return parseUnitSyntax(contents).sections.includes('Install');
}

function checkDropin(dropin: Dropin, path: string, report: Report): void {
  if (dropin.name !== '' && !DROPIN_NAME.test(dropin.name)) {
    report.problem(`${path}.name`, `${quote(dropin.name)} is not a drop-in name`, '<name>.conf');
  }
  const { problem } = parseUnitSyntax(dropin.contents ?? '');
  if (problem !== undefined) {
    report.problem(`${path}.contents`, problem, 'the syntax of systemd.syntax(7)');
  }
}

/**
 * The syntax of unit files as go-systemd reads it, which decides for Ignition and MCO whether a unit's contents are
 * acceptable: sections in brackets, `Name=value` lines, comments, continuation lines.
 */

/** Longest line go-systemd lets pass, in bytes. */
const LINE_MAX = 2048;

export interface UnitSyntax {
  /** Section names in order of appearance. */
  readonly sections: readonly string[];
  /** What is wrong with the first line that is; what comes after it has not been read. */
  readonly problem?: string;
}

/** @returns which sections a unit or drop-in has, and what is wrong with its contents if anything is. */
export function parseUnitSyntax(contents: string): UnitSyntax {
  const parser = new UnitParser();
  for (const [index, line] of contents.split('\n').entries()) {
    const problem = parser.line(line.endsWith('\r') ? line.slice(0, -1) : line);
    if (problem !== undefined) {
      return { sections: parser.sections, problem: `line ${index + 1} ${problem}` };
    }
  }
  return { sections: parser.sections };
}

class UnitParser {
  readonly sections: string[] = [];
  /** What the line before, ending in a backslash, goes on with. */
  #continued: 'setting' | 'comment' | undefined;

  /** @returns in words what is wrong with the line, or undefined. */
  line(line: string): string | undefined {
    // Counting bytes costs; a line shorter in UTF-16 than a third of the limit can not be longer in UTF-8.
    if (line.length > LINE_MAX / 3 && Buffer.byteLength(line) >= LINE_MAX) {
      return `is longer than ${LINE_MAX} bytes`;
    }
    const start = line.trimStart();
    if (this.#continued === 'setting') {
      this.#continueSetting(line);
    } else if (this.#continued === 'comment' || start.startsWith('#') || start.startsWith(';')) {
      this.#continued = line.trimEnd().endsWith('\\') ? 'comment' : undefined;
    } else if (start.startsWith('[')) {
      return this.#section(start);
    } else if (start !== '' && this.sections.length > 0) {
      return this.#setting(line);
    }
    // go-systemd skips whatever stands before the first section.
    return undefined;
  }

  #section(line: string): string | undefined {
    const end = line.indexOf(']');
    if (end < 0) {
      return 'opens a section without closing bracket';
    }
    if (line.slice(end + 1).trim() !== '') {
      return 'has something after the section name';
    }
    this.sections.push(line.slice(1, end));
    return undefined;
  }

  #setting(line: string): string | undefined {
    if (!line.includes('=')) {
      return 'is neither a section, a comment nor Name=value';
    }
    this.#continueSetting(line);
    return undefined;
  }

  #continueSetting(line: string): void {
    this.#continued = line.endsWith('\\') ? 'setting' : undefined;
  }
}
