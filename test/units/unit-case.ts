import { posix } from 'node:path';
import fc from 'fast-check';
import { parseUnitSyntax } from '../../machineconfig/ignition/validate-units.ts';
import { isAliasOf, parseUnitName, templateOf } from '../../machineconfig/units/unit-name.ts';

/** A base image's units, and a rendered config's: what enablement depends on. */
export interface UnitCase {
  readonly base: readonly BaseEntry[];
  readonly units: readonly CaseUnit[];
  /** Units that the config brings as plain files, by name. */
  readonly files: Readonly<Record<string, string>>;
}

export interface BaseEntry {
  /** From the root, without a slash at first. */
  readonly path: string;
  readonly text?: string;
  readonly target?: string;
}

/** As Ignition has it. */
export interface CaseUnit {
  readonly name: string;
  readonly contents?: string;
  readonly enabled?: boolean;
  readonly mask?: boolean;
  readonly dropins?: readonly { readonly name: string; readonly contents: string }[];
}

const names = [
  'a.service',
  'b.service',
  'c-d.service',
  't@.service',
  't@x.service',
  't@y.service',
  'u@.service',
  'u@x.service',
  's.socket',
  't@.socket',
  'm.mount',
  'g@x.target',
  'k.slice',
];
const targets = [
  'm.target',
  'n.target',
  'g@.target',
  'g@%i.target',
  'g@x.target',
  '%p.target',
  '%N.target',
  '%j.target',
  '"q.target"',
  "'r'.target",
  'k.slice',
  '%%.target',
  '../up.target',
  'bad',
  '%u-%U.target',
];
const aliases = [
  'al.service',
  'al@.service',
  'al@x.service',
  'al@%i.service',
  'al-%i.service',
  'b.service',
  't@z.service',
  'v@.service',
  'al.socket',
  'al@.socket',
  'al.mount',
  'al@x.target',
  'm.target.wants/a.service',
  'm.target.wants/t@x.service',
  'm.target.requires/t@.service',
  'g@.target.wants/t@.service',
  'bad.wants/a.service',
  '../al.service',
  't@.service',
  'a.service',
];
const also = [...names, 'nope.service', 't@%i.service', 'al.service'];

const words = (list: readonly string[]) =>
  fc.array(fc.constantFrom(...list), { minLength: 0, maxLength: 2 }).map((each) => each.join(' '));
const install = fc.oneof(
  { weight: 5, arbitrary: words(targets.slice(0, 4)).map((value) => `WantedBy=${value}`) },
  { weight: 3, arbitrary: words(targets).map((value) => `WantedBy = ${value}`) },
  { weight: 2, arbitrary: words(targets).map((value) => `RequiredBy=${value}`) },
  { weight: 4, arbitrary: words(aliases).map((value) => `Alias=${value}`) },
  { weight: 3, arbitrary: words(also).map((value) => `Also=${value}`) },
  {
    weight: 2,
    arbitrary: fc.constantFrom('x', 'y', '', 'd-%p', 'a/b').map((value) => `DefaultInstance=${value}`),
  },
  fc.constantFrom(
    'wantedby=low.target',
    '; WantedBy=c1.target',
    '  # WantedBy=c2.target \\',
    'WantedBy=c3.target \\',
    'WantedBy=c4.target \\\n# in between\n  c5.target',
    'WantedBy=c6.target\\\\',
    '[Unit]',
    '[install]',
    '[Install]',
    '[X-Install]',
    'nothing',
    'WantedBy=c11.target \\ ',
    '  WantedBy=c7.target  ',
    'Also=',
    'WantedBy=',
    '=x',
    'WantedBy="c8.target',
    'WantedBy=c9.target # c10.target',
  ),
);
const text = fc
  .record({
    lines: fc.array(install, { maxLength: 4 }),
    end: fc.constantFrom('\n', '\n', '\n', '\r\n'),
    head: fc.constantFrom('[Install]', '[Install]', '[Install]', '[Unit]\nWantedBy=no.target\n[Install]'),
    tail: fc.boolean(),
  })
  .map(({ lines, end, head, tail }) =>
    [head, ...lines]
      .join('\n')
      .replaceAll('\n', end)
      .concat(tail ? end : ''),
  );

// A MachineConfig whose unit go-systemd can't read is refused; a base may have what systemd lets pass.
const configured = text.filter((each) => parseUnitSyntax(each).problem === undefined);

const name = fc.constantFrom(...names);
const dropins = fc.uniqueArray(
  fc.record({ name: fc.constantFrom('10-x.conf', '20-x.conf', 'no.txt.conf'), contents: configured }),
  { maxLength: 2, selector: (each) => each.name },
);
const unit: fc.Arbitrary<CaseUnit> = fc
  .record({
    name,
    contents: fc.option(configured, { nil: undefined, freq: 3 }),
    enabled: fc.constantFrom(true, true, true, false, false, undefined),
    mask: fc.constantFrom(true, ...Array.from({ length: 9 }, () => undefined)),
    dropins: fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, dropins),
  })
  .map(
    (each) =>
      Object.fromEntries(
        Object.entries(each).filter(([, value]) => value !== undefined),
      ) as unknown as CaseUnit,
  );

// What the base has in the way of an alias is replaced on purpose, so that no name of `aliases` is among these.
const etcNames = names.filter((each) => !aliases.includes(each));
const vendor = 'usr/lib/systemd/system';
const etc = 'etc/systemd/system';
const entry: fc.Arbitrary<BaseEntry> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ path: name.map((each) => `${vendor}/${each}`), text }) },
  {
    weight: 2,
    arbitrary: fc.record({ path: fc.constantFrom(...etcNames).map((each) => `${etc}/${each}`), text }),
  },
  fc.record({ path: name.map((each) => `${vendor}/${each}.d/10-x.conf`), text }),
  fc.record({ path: name.map((each) => `${etc}/${each}.d/15-x.conf`), text }),
  fc.record({
    path: name.map((each) => `${vendor}/${each}`),
    target: fc.constantFrom('/dev/null', ...names),
  }),
  fc.record({
    path: fc.constantFrom(...etcNames).map((each) => `${etc}/${each}`),
    target: fc.constantFrom('/dev/null', ...names.map((each) => `/${vendor}/${each}`)),
  }),
  {
    weight: 3,
    arbitrary: fc.record({
      path: fc
        .tuple(fc.constantFrom('m.target.wants', 'o.target.wants', 'o.target.requires'), name)
        .map(([directory, each]) => `${etc}/${directory}/${each}`),
      target: name.map((each) => `/${vendor}/${each}`),
    }),
  },
  fc.record({
    path: fc.constantFrom('z.service', 'z@.service', 'z@x.service').map((each) => `${etc}/${each}`),
    target: fc.constantFrom(...names.map((each) => `/${vendor}/${each}`), 'a.service', `/${etc}/b.service`),
  }),
);

const files = fc.oneof(
  { weight: 4, arbitrary: fc.constant({}) },
  fc.dictionary(name, configured, { maxKeys: 1 }),
  fc.constant({ 'm.target.wants/a.service': 'text' }),
);

/** Bases and configs in which as much as possible meets. */
export const unitCases: fc.Arbitrary<UnitCase> = fc
  .record({
    base: fc.uniqueArray(entry, { maxLength: 8, selector: ({ path }) => path }),
    units: fc.uniqueArray(unit, { minLength: 1, maxLength: 5, selector: (each) => each.name }),
    files,
  })
  .map((each) => ({ ...each, files: withoutUnits(each) }))
  .filter((each) => !disablesBroken(each));

/**
 * `systemctl disable` of a name that is a link to a unit of another kind, or a link of the vendor's to none, fails
 * before it does anything ("Failed to look up unit file state"). Shale removes the links to the name all the same: no
 * such unit can be loaded, and `enabled: false` asks for it.
 */
function disablesBroken({ base, units }: UnitCase): boolean {
  const off = units.filter(({ enabled }) => enabled === false).map((each) => each.name);
  const disabled = new Set(off.flatMap((each) => [each, templateOf(each) ?? each]));
  const vendorUnits = new Set(base.filter((each) => each.text !== undefined).map((each) => each.path));
  return base.some(({ path: place, target = '/dev/null' }) => {
    if (target === '/dev/null' || !disabled.has(posix.basename(place))) return false;
    const isVendors = place.startsWith(`${vendor}/`);
    if (isVendors && !vendorUnits.has(`${vendor}/${posix.basename(target)}`)) return true;
    const [from, to] = [place, target].map((each) => parseUnitName(posix.basename(each)));
    if (from === undefined || to === undefined) return false;
    return posix.basename(place) !== posix.basename(target) && !isAliasOf(from, to);
  });
}

/** A file at a unit's own place is refused. */
function withoutUnits({ units, files: given }: UnitCase): UnitCase['files'] {
  const taken = new Set(
    units.filter(({ contents = '', mask }) => contents !== '' || mask === true).map((each) => each.name),
  );
  return Object.fromEntries(Object.entries(given).filter(([file]) => !taken.has(file)));
}
