import { by } from '../../api/order.ts';
import { quote } from '../problem.ts';
import { readInstallSection } from '../units/install-section.ts';
import { installTargets, whyUnreadable } from '../units/install-targets.ts';
import { templateOf } from '../units/unit-name.ts';
import { ETC_UNITS } from '../units/unit-tree.ts';
import type { Storage, Unit } from './config.ts';
import type { Report } from './report.ts';

/**
 * Warns of what `systemctl enable` refuses to do for the enabled units whose text a config has, and which therefore
 * stays undone on nodes. Of other units, the text is the base image's.
 */
export function checkEnablement(units: readonly Unit[], storage: Storage, report: Report): void {
  const { files = [], directories = [], links = [] } = storage;
  const paths = new Set([...files, ...directories, ...links].map(({ path }) => path));
  const texts = new Map(units.map((unit) => [unit.name, textsOf(unit)]));
  for (const [index, { name, enabled, mask }] of units.entries()) {
    if (enabled !== true || mask === true) continue;
    const template = templateOf(name) ?? name;
    const own = texts.get(name)?.unit ?? texts.get(template)?.unit;
    if (own === undefined) continue;
    const dropins = [...new Set([name, template])].flatMap((each) => texts.get(each)?.dropins ?? []);
    const install = readInstallSection([own, ...dropins]);
    const unit = { kind: 'unit' as const, name, path: `${ETC_UNITS}/${name}`, install };
    const { targets, refused } = installTargets(unit);
    const why = whyUnreadable(unit);
    const inTheWay = targets.filter(({ place }) => paths.has(`${ETC_UNITS}/${place}`));
    for (const reason of why === undefined ? refused : [why]) {
      report.warning(`$.systemd.units[${index}].enabled`, `${quote(name)}: ${reason}`, EXPECTED);
    }
    for (const { setting, place } of why === undefined ? inTheWay : []) {
      const reason = `${quote(name)}: ${setting} has no effect, because the config has ${ETC_UNITS}/${place} itself`;
      report.warning(`$.systemd.units[${index}].enabled`, reason, 'one of both');
    }
  }
}

const EXPECTED = 'an [Install] section that systemctl enable accepts (systemd.unit(5))';

interface Texts {
  readonly unit: string | undefined;
  readonly dropins: readonly string[];
}

function textsOf({ contents = '', dropins = [] }: Unit): Texts {
  const sorted = [...dropins].sort(by(({ name }) => name));
  return {
    unit: contents === '' ? undefined : contents,
    dropins: sorted.map((dropin) => dropin.contents ?? ''),
  };
}
