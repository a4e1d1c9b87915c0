import { configuredTree, type UnitConfig } from './configured-units.ts';
import { parseUnitName, templateOf } from './units/unit-name.ts';
import { findUnit, unknownTree } from './units/unit-tree.ts';

/**
 * The preset of an image (systemd.preset(5)). Of the base's own units only the names are known: its record has no
 * contents (image/base/base-tree.ts). A preset says what is wanted where the image is installed; on a node its daemon
 * enables and disables them (daemon/files/units-of-image.ts).
 *
 * The first line that matches a name counts. Instances are words of their template's line, and `systemctl preset-all`
 * looks for that one by the template's name: it comes before any other line that has that name.
 *
 * @returns its text; undefined when no line is needed.
 */
export function unitPreset(config: UnitConfig): string | undefined {
  const lines = [...instanceLines(config), ...plainLines(config)];
  return lines.length === 0 ? undefined : `${lines.join('\n')}\n`;
}

function instanceLines(config: UnitConfig): string[] {
  const instances = new Map<string, Set<string>>();
  for (const { name, enabled } of presetUnits(config)) {
    const { kind, instance = '' } = parseUnitName(name) ?? {};
    const template = templateOf(name);
    if (template === undefined) continue;
    if (kind === 'instance' && enabled) {
      instances.set(template, (instances.get(template) ?? new Set()).add(instance));
    }
    // To disable a template disables all of its instances.
    if (!enabled && kind === 'template') instances.delete(template);
  }
  return [...instances]
    .map(([template, names]) => `enable ${template} ${[...names].sort().join(' ')}`)
    .sort();
}

function plainLines(config: UnitConfig): string[] {
  // A disabled instance has a line of its own: `systemctl preset` reads it, and `preset-all` knows no instances but
  // those enabled.
  const units = presetUnits(config).filter(
    ({ name, enabled }) => !enabled || parseUnitName(name)?.kind !== 'instance',
  );
  return units.map(({ name, enabled }) => `${enabled ? 'enable' : 'disable'} ${name}`).sort();
}

/** Units that the config only enables or disables. */
function presetUnits(config: UnitConfig): { readonly name: string; readonly enabled: boolean }[] {
  const tree = configuredTree(config, unknownTree);
  return [...config.units.values()].flatMap(({ name, enabled, masked }) =>
    enabled === undefined || masked || findUnit(tree, name).kind !== 'missing' ? [] : [{ name, enabled }],
  );
}
