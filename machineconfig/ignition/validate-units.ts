import { quote } from '../problem.ts';
import type { Dropin, Unit } from './config.ts';
import type { Report } from './report.ts';
import { parseUnitSyntax } from './unit-syntax.ts';

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
  const { contents = '' } = unit;
  const { sections, problem } = parseUnitSyntax(contents);
  if (problem !== undefined) {
    report.problem(`${path}.contents`, problem, 'the syntax of systemd.syntax(7)');
  } else if (unit.enabled === true && contents !== '' && !sections.includes('Install')) {
    report.warning(`${path}.contents`, 'has no [Install] section, so enabling does nothing', '[Install]');
  }
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
