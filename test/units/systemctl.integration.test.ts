/** systemctl is the independent reader of which units an image enables, on random sets of units. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { emptyNodeConfig } from '../../machineconfig/node-config.ts';
import { everyCase, seed } from '../fixtures/sample.ts';
import { verifyConfig } from '../fixtures/standard-content.ts';
import { type BaseEntry, type CaseUnit, type UnitCase, unitCases } from './unit-case.ts';
import {
  comparable,
  type Links,
  linksByPreset,
  linksBySystemctl,
  linksInStandardMode,
  linksOfImage,
  renderedOf,
  standardNode,
} from './unit-trees.ts';

/** `SHALE_UNIT_CASES=5000` tries as many as that. */
const RUNS = Number(process.env['SHALE_UNIT_CASES'] ?? (everyCase ? 2000 : 40));
const HOUR_MS = 3_600_000;

let directory = '';
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'shale-units-'));
});
afterEach(async () => {
  await rm(directory, { recursive: true });
});

/** Compares both modes with the real systemctl. @param before a config that standard mode had before. */
async function compare(within: string, unitCase: UnitCase, before?: UnitCase): Promise<Links> {
  const at = (name: string) => path.join(within, name);
  const real = comparable(await linksBySystemctl(at('real'), unitCase), unitCase);
  const standard = await linksInStandardMode(at('standard'), unitCase);
  expect({ standard: comparable(standard, unitCase) }).toEqual({ standard: real });
  expect({ image: await linksOfImage(at('image'), unitCase) }).toEqual({ image: standard });
  if (before === undefined) return standard;
  const by = renderedOf(before).config;
  expect({ next: await linksInStandardMode(at('next'), unitCase, by) }).toEqual({ next: standard });
  return standard;
}

const etc = 'etc/systemd/system';
const os = 'usr/lib/systemd/system';
const install = (text: string) => `[Service]\nExecStart=/bin/true %i\n[Install]\n${text}\n`;
const given = (base: Readonly<Record<string, string>>, ...units: readonly CaseUnit[]): UnitCase => ({
  base: Object.entries(base).map(
    ([name, text]): BaseEntry =>
      text.startsWith('-> ') ? { path: name, target: text.slice(3) } : { path: name, text },
  ),
  units,
  files: {},
});
const own = (name: string, text: string, more: Partial<CaseUnit> = {}): CaseUnit => ({
  name,
  contents: install(text),
  enabled: true,
  ...more,
});

describe('the links of units are those that systemctl makes', () => {
  test.each<[string, UnitCase, readonly string[]]>([
    [
      'an instance of a template that the config brings',
      given({}, own('bar@.service', 'WantedBy=m.target', { enabled: false }), {
        name: 'bar@x.service',
        enabled: true,
      }),
      [`m.target.wants/bar@x.service -> /${etc}/bar@.service`],
    ],
    [
      'an instance of a template of the base',
      given(
        { [`${os}/bar@.service`]: install('WantedBy=m@%i.target') },
        { name: 'bar@x.service', enabled: true },
      ),
      [`m@x.target.wants/bar@x.service -> /${os}/bar@.service`],
    ],
    [
      'a template with a default instance',
      given({}, own('foo@.service', 'WantedBy=m.target\nDefaultInstance=a')),
      [`m.target.wants/foo@a.service -> /${etc}/foo@.service`],
    ],
    ['a template without one', given({}, own('bar@.service', 'WantedBy=m.target')), []],
    [
      'aliases, some of which no unit may have',
      given(
        {},
        own('a.service', 'Alias=b.service c.socket d@.service'),
        own('t@x.service', 'Alias=u@.service'),
      ),
      [`b.service -> /${etc}/a.service`, `u@x.service -> /${etc}/t@x.service`],
    ],
    [
      'one alias of two units',
      given({}, own('a.service', 'Alias=s.service'), own('b.service', 'Alias=s.service')),
      [`s.service -> /${etc}/a.service`],
    ],
    [
      'an alias that another unit has whose own is disabled',
      given({}, own('b.service', 'Alias=s.service'), own('a.service', 'Alias=s.service', { enabled: false })),
      [`s.service -> /${etc}/b.service`],
    ],
    [
      'a disabled unit whose alias is the name of an enabled one',
      given(
        {},
        own('b.service', 'WantedBy=m.target'),
        own('a.service', 'Alias=b.service', { enabled: false }),
      ),
      [`m.target.wants/b.service -> /${etc}/b.service`],
    ],
    [
      'a disabled unit whose alias the base has for another one',
      given(
        { [`${os}/b.service`]: install(''), [`${etc}/s.service`]: `-> /${os}/b.service` },
        own('a.service', 'Alias=s.service', { enabled: false }),
      ),
      [`s.service -> /${os}/b.service`],
    ],
    [
      'a disabled unit whose alias is a unit that the base has in /etc',
      given({ [`${etc}/b.service`]: install('') }, own('a.service', 'Alias=b.service', { enabled: false })),
      [],
    ],
    [
      'a disabled unit with links of the base that its [Install] does not name',
      given(
        {
          [`${os}/bar.service`]: '[Service]\nExecStart=/bin/true\n',
          [`${etc}/foo.target.wants/bar.service`]: `-> /${os}/bar.service`,
          [`${etc}/other.service`]: '-> ../../../usr/lib/systemd/system/bar.service',
          [`${etc}/foo.target.wants/baz.service`]: `-> /${os}/baz.service`,
        },
        { name: 'bar.service', enabled: false },
      ),
      [`foo.target.wants/baz.service -> /${os}/baz.service`],
    ],
    [
      'units of Also=, one of them masked',
      given(
        {},
        own('a.service', 'Also=a.socket b.socket'),
        own('a.socket', 'WantedBy=m.target', { enabled: false }),
        {
          name: 'b.socket',
          mask: true,
        },
      ),
      ['b.socket -> /dev/null'],
    ],
    [
      'a unit that the base has in /etc',
      given({ [`${etc}/a.service`]: install('WantedBy=m.target') }, { name: 'a.service', enabled: true }),
      [`m.target.wants/a.service -> /${etc}/a.service`],
    ],
    [
      'a drop-in of the config for a unit of the base',
      given(
        { [`${os}/a.service`]: install('WantedBy=m.target') },
        {
          name: 'a.service',
          enabled: true,
          dropins: [{ name: '10-x.conf', contents: install('WantedBy=\nWantedBy=n.target') }],
        },
      ),
      [`n.target.wants/a.service -> /${os}/a.service`],
    ],
    [
      'a drop-in of the base for a unit of the config',
      given({ [`${os}/a.service.d/10-x.conf`]: install('WantedBy=') }, own('a.service', 'WantedBy=m.target')),
      [],
    ],
    [
      'a unit that the config brings as a file',
      {
        ...given({}, { name: 'a.service', enabled: true }),
        files: { 'a.service': install('WantedBy=m.target') },
      },
      [`m.target.wants/a.service -> /${etc}/a.service`],
    ],
    [
      'a file of the config where a link would be',
      {
        ...given({}, own('a.service', 'WantedBy=m.target n.target')),
        files: { 'm.target.wants/a.service': 'text' },
      },
      [`n.target.wants/a.service -> /${etc}/a.service`],
    ],
    [
      'line ends, comments and continued lines',
      given(
        {},
        own(
          'al.service',
          'WantedBy=a.target \\\n  b.target\nWantedBy=\nWantedBy=c.target\n; WantedBy=d.target',
        ),
        {
          name: 'crlf.service',
          enabled: true,
          contents: install('WantedBy=m.target \\\nn.target').replaceAll('\n', '\r\n'),
        },
        { name: 'low.service', enabled: true, contents: '[install]\nwantedby=m.target\n' },
      ),
      [
        `c.target.wants/al.service -> /${etc}/al.service`,
        `m.target.wants/crlf.service -> /${etc}/crlf.service`,
        `n.target.wants/crlf.service -> /${etc}/crlf.service`,
      ],
    ],
  ])('%s', async (_name, unitCase, links) => {
    expect(await compare(directory, unitCase)).toEqual(links);
  });

  test(
    'any units, in either mode, whatever was there before',
    async () => {
      let index = 0;
      await fc.assert(
        fc.asyncProperty(unitCases, unitCases, async (unitCase, before) => {
          index += 1;
          await compare(path.join(directory, String(index)), unitCase, before);
        }),
        { seed, numRuns: RUNS },
      );
    },
    HOUR_MS,
  );
});

describe('what the next config drops decides nothing', () => {
  const base = {
    [`${os}/sshd.service`]: install('WantedBy=m.target'),
    [`${etc}/m.target.wants/sshd.service`]: `-> /${os}/sshd.service`,
  };
  const kept = given(base, { name: 'sshd.service', enabled: true });
  test.each<[string, UnitCase, UnitCase]>([
    ['the text of a unit', given(base, own('sshd.service', 'WantedBy=other.target')), kept],
    [
      'a drop-in',
      given(base, {
        name: 'sshd.service',
        enabled: true,
        dropins: [{ name: '10-x.conf', contents: install('WantedBy=other.target') }],
      }),
      kept,
    ],
    ['a disabled unit', given(base, { name: 'sshd.service', enabled: false }), kept],
    ['a masked unit', given(base, { name: 'sshd.service', mask: true }), kept],
    [
      'an override of a unit that is disabled afterwards',
      given(base, own('sshd.service', 'WantedBy=other.target')),
      given(base, { name: 'sshd.service', enabled: false }),
    ],
  ])('%s', async (_name, before, after) => {
    await compare(directory, after, before);
  });
});

test('an admin’s link to a unit that is disabled goes, is drift when it is back, and comes back with the next config', async () => {
  const node = await standardNode(
    directory,
    given({ [`${os}/a.service`]: install('WantedBy=m.target') }).base,
  );
  const admins = ['foo.target.wants/a.service', `/${os}/a.service`] as const;
  const { config } = renderedOf(given({}, { name: 'a.service', enabled: false }));
  await node.addLink(...admins);
  await node.write(emptyNodeConfig, config);
  expect(await node.links()).toEqual([]);
  expect(await verifyConfig(directory, config)).toEqual([]);

  await node.addLink(...admins);
  const drifts = await verifyConfig(directory, config);
  expect(drifts.map(({ path: at }) => at)).toEqual([`/${etc}/foo.target.wants/a.service`]);
  await rm(path.join(directory, etc, 'foo.target.wants/a.service'));

  await node.write(config, emptyNodeConfig);
  expect(await node.links()).toEqual([admins.join(' -> ')]);
});

describe('the preset of an image', () => {
  const base = {
    [`${os}/bar@.service`]: install('WantedBy=m.target'),
    [`${os}/d@.service`]: install('WantedBy=m.target\nDefaultInstance=d'),
    [`${os}/a.service`]: install('WantedBy=m.target'),
  };
  test.each<[string, readonly CaseUnit[]]>([
    [
      'instances',
      [
        { name: 'bar@y.service', enabled: true },
        { name: 'bar@x.service', enabled: true },
      ],
    ],
    ['a unit', [{ name: 'a.service', enabled: true }]],
    [
      'an instance and its disabled template',
      [
        { name: 'bar@.service', enabled: false },
        { name: 'bar@x.service', enabled: true },
      ],
    ],
    [
      'a template and its instance that is disabled',
      [
        { name: 'd@.service', enabled: true },
        { name: 'd@x.service', enabled: false },
      ],
    ],
    [
      'a template that is disabled after its instance is enabled',
      [
        { name: 'bar@x.service', enabled: true },
        { name: 'bar@.service', enabled: false },
      ],
    ],
  ])('is read by systemctl preset-all as enabling is: %s', async (_name, units) => {
    const unitCase = given(base, ...units);
    const real = await linksBySystemctl(path.join(directory, 'real'), unitCase);
    expect(await linksByPreset(path.join(directory, 'preset'), unitCase)).toEqual(real);
  });
});
