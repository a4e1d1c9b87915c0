import { describe, expect, test } from 'vitest';
import { configOf, unitsOf } from '../test/fixtures/configs.ts';
import type { UnitConfig } from './configured-units.ts';
import type { NodeUnit } from './node-config.ts';
import { unitLinks, unitLinksOfImage } from './unit-links.ts';
import { type UnitFile, type UnitTree, unknownTree } from './units/unit-tree.ts';

const unit = (name: string, more: Partial<NodeUnit> = {}): NodeUnit => ({
  name,
  masked: false,
  dropins: new Map(),
  ...more,
});
const install = (text: string) => `[Unit]\nDescription=x\n[Service]\nWantedBy=not.this\n[Install]\n${text}\n`;
const of = (...units: readonly NodeUnit[]): UnitConfig => configOf({}, { units: unitsOf(...units) });
const enabled = (name: string, text: string) =>
  unitLinks(of(unit(name, { contents: install(text), enabled: true })), unknownTree).links;
/** A tree with these files, and links as `-> target`. */
const treeOf = (entries: Readonly<Record<string, string>>): UnitTree => {
  const files = Object.entries(entries).map(([path, text]): [string, UnitFile] => [
    path,
    text.startsWith('-> ') ? { kind: 'link', target: text.slice(3) } : { kind: 'file', text },
  ]);
  const links = files.flatMap(([path, file]) =>
    file.kind === 'link' && path.startsWith(`${at}/`) ? [[path, file.target] as const] : [],
  );
  return { entry: (path) => new Map(files).get(path), list: () => [], links: new Map(links) };
};
const os = '/usr/lib/systemd/system';
const at = '/etc/systemd/system';

describe('unitLinks', () => {
  test.each<[string, string, string, string[]]>([
    ['WantedBy', 'a.service', 'WantedBy=multi-user.target', [`${at}/multi-user.target.wants/a.service`]],
    [
      'several',
      'a.service',
      'WantedBy=x.target y.target',
      [`${at}/x.target.wants/a.service`, `${at}/y.target.wants/a.service`],
    ],
    ['RequiredBy', 'a.mount', 'RequiredBy=x.target', [`${at}/x.target.requires/a.mount`]],
    ['Alias', 'a.service', 'Alias=b.service', [`${at}/b.service`]],
    ['an assignment without a value clears the list', 'a.service', 'WantedBy=x.target\nWantedBy=', []],
    ['an instance', 'a@one.service', 'WantedBy=x@%i.target', [`${at}/x@one.target.wants/a@one.service`]],
    [
      'a template by its default instance',
      'a@.service',
      'WantedBy=x.target\nDefaultInstance=two',
      [`${at}/x.target.wants/a@two.service`],
    ],
    ['a template without an instance', 'a@.service', 'WantedBy=x.target', []],
    ['a template in templates', 'a@.service', 'WantedBy=x@.target', [`${at}/x@.target.wants/a@.service`]],
    ['no way out of the directory', 'a.service', 'WantedBy=../../x.target\nAlias=../passwd', []],
    ['nothing to install', 'a.service', '', []],
    ['no alias of another type', 'a.service', 'Alias=a.socket b@.service a.service', []],
    [
      'other line ends',
      'a.service',
      'WantedBy=x.target \\\r\n y.target\r',
      [`${at}/x.target.wants/a.service`, `${at}/y.target.wants/a.service`],
    ],
    [
      'settings by their exact names',
      'a.service',
      'wantedby=x.target\n;WantedBy=y.target\n[install]\nWantedBy=z.target',
      [],
    ],
  ])('%s', (_name, name, text, paths) => {
    expect(enabled(name, text).map(({ path }) => path)).toEqual(paths);
  });

  test('a link points to the unit in /etc, also to an instance that has a text of its own', () => {
    expect(enabled('a@one.service', 'WantedBy=x.target')[0]?.target).toBe(`${at}/a@one.service`);
  });

  test('an instance is linked to the template that the config brings', () => {
    const template = unit('bar@.service', { contents: install('WantedBy=multi-user.target'), enabled: true });
    expect(unitLinks(of(template, unit('bar@x.service', { enabled: true })), unknownTree).links).toEqual([
      { path: `${at}/multi-user.target.wants/bar@x.service`, target: `${at}/bar@.service` },
    ]);
  });

  test('a unit of the OS is linked to its path in the OS, if its text is known', () => {
    const tree = treeOf({ [`${os}/chronyd.service`]: install('WantedBy=multi-user.target') });
    const config = of(unit('chronyd.service', { enabled: true }));
    expect(unitLinks(config, tree).links).toEqual([
      {
        path: `${at}/multi-user.target.wants/chronyd.service`,
        target: '/usr/lib/systemd/system/chronyd.service',
      },
    ]);
    expect(unitLinks(config, unknownTree).links).toEqual([]);
  });

  test('a unit that the base has in /etc is linked to its path there', () => {
    const tree = treeOf({ [`${at}/a.service`]: install('WantedBy=x.target') });
    expect(unitLinks(of(unit('a.service', { enabled: true })), tree).links[0]?.target).toBe(
      `${at}/a.service`,
    );
  });

  test('a masked unit is a link to /dev/null, also when it is enabled', () => {
    expect(unitLinks(of(unit('a.service', { masked: true, enabled: true })), unknownTree).links).toEqual([
      { path: `${at}/a.service`, target: '/dev/null' },
    ]);
  });

  test('a unit without text is the base’s', () => {
    const tree = treeOf({ [`${os}/a.service`]: install('WantedBy=x.target') });
    const { links } = unitLinks(of(unit('a.service', { contents: '', enabled: true })), tree);
    expect(links.map(({ target }) => target)).toEqual([`${os}/a.service`]);
  });

  test('where a disabled unit would be enabled is no link', () => {
    const disabled = unit('a.service', { contents: install('WantedBy=x.target'), enabled: false });
    expect(unitLinks(of(disabled), unknownTree)).toMatchObject({
      links: [],
      removals: [`${at}/x.target.wants/a.service`],
    });
  });

  test('every link to a disabled unit is removed, also those that its [Install] does not name', () => {
    const tree = treeOf({
      [`${os}/a.service`]: '[Service]\n',
      [`${at}/foo.target.wants/a.service`]: `-> ${os}/a.service`,
      [`${at}/other.service`]: '-> ../../../usr/lib/systemd/system/a.service',
      [`${at}/foo.target.wants/b.service`]: `-> ${os}/b.service`,
    });
    expect(unitLinks(of(unit('a.service', { enabled: false })), tree).removals).toEqual([
      `${at}/foo.target.wants/a.service`,
      `${at}/other.service`,
    ]);
  });

  test('to disable a template removes the links of its instances, and to disable an instance no other', () => {
    const tree = treeOf({
      [`${os}/a@.service`]: '[Service]\n',
      [`${at}/x.target.wants/a@1.service`]: `-> ${os}/a@.service`,
      [`${at}/x.target.wants/a@2.service`]: `-> ${os}/a@.service`,
    });
    const removals = (name: string) => unitLinks(of(unit(name, { enabled: false })), tree).removals;
    expect(removals('a@.service')).toHaveLength(2);
    expect(removals('a@2.service')).toEqual([`${at}/x.target.wants/a@2.service`]);
  });

  const alias = install('Alias=shared.service');
  const a = unit('a.service', { contents: alias });
  const b = unit('b.service', { contents: alias });

  test.each([
    [
      'before',
      [
        { ...a, enabled: false },
        { ...b, enabled: true },
      ],
    ],
    [
      'after',
      [
        { ...b, enabled: true },
        { ...a, enabled: false },
      ],
    ],
  ])('an alias of another unit stays when a unit with the same is disabled %s it is made', (_when, units) => {
    expect(unitLinks(of(...units), unknownTree)).toMatchObject({
      links: [{ path: `${at}/shared.service`, target: `${at}/b.service` }],
      removals: [],
    });
  });

  test('of two units with one alias the first has it', () => {
    const { links, refusals } = unitLinks(of({ ...b, enabled: true }, { ...a, enabled: true }), unknownTree);
    expect(links).toEqual([{ path: `${at}/shared.service`, target: `${at}/b.service` }]);
    expect(refusals).toEqual([
      {
        unit: 'a.service',
        why: `Alias=shared.service requires the link ${at}/shared.service, which leads to ${at}/b.service already`,
      },
    ]);
  });

  test('what the config has at a path counts more than [Install]', () => {
    const at1 = `${at}/x.target.wants/a.service`;
    const link = { path: at1, target: '/dev/null', hard: false, user: { id: 0 }, group: { id: 0 } };
    const enabledUnit = unit('a.service', { contents: install('WantedBy=x.target'), enabled: true });
    for (const own of [configOf({ [at1]: 'text' }), configOf({}, { links: new Map([[at1, link]]) })]) {
      const config = { ...own, units: unitsOf(enabledUnit) };
      const { links, removals, refusals } = unitLinks(config, unknownTree);
      expect({ links, removals }).toEqual({ links: [], removals: [] });
      expect(refusals[0]?.why).toBe(
        `WantedBy=x.target requires the link ${at1}, and the config has that path itself`,
      );
      const disabled = { ...own, units: unitsOf({ ...enabledUnit, enabled: false }) };
      expect(unitLinks(disabled, treeOf({ [at1]: '-> /dev/null' })).removals).toEqual([]);
    }
  });

  test('Also= includes other units', () => {
    const tree = treeOf({ [`${os}/a.socket`]: install('WantedBy=sockets.target') });
    const { links } = unitLinks(
      of(unit('a.service', { contents: install('Also=a.socket a.service'), enabled: true })),
      tree,
    );
    expect(links.map(({ path }) => path)).toEqual([`${at}/sockets.target.wants/a.socket`]);
  });

  test('neither enabled nor disabled changes nothing', () => {
    expect(unitLinks(of(unit('a.service', { contents: install('WantedBy=x.target') })), unknownTree)).toEqual(
      {
        links: [],
        removals: [],
        refusals: [],
      },
    );
  });

  test('a link that the image carries and that the base’s drop-in takes away is a removal', () => {
    const carried = `${at}/x.target.wants/a.service`;
    const dropin = `${os}/a.service.d/10-x.conf`;
    const tree = {
      ...treeOf({ [carried]: `-> ${at}/a.service`, [dropin]: install('WantedBy=') }),
      list: (directory: string) => (directory === `${os}/a.service.d` ? ['10-x.conf'] : []),
    };
    const config = of(unit('a.service', { contents: install('WantedBy=x.target'), enabled: true }));
    expect(unitLinks(config, unknownTree).links.map(({ path }) => path)).toEqual([carried]);
    expect(unitLinksOfImage(config, tree)).toMatchObject({ links: [], removals: [carried] });
  });
});
