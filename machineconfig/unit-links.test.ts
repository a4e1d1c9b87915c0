import { describe, expect, test } from 'vitest';
import type { NodeUnit } from './node-config.ts';
import { unitLinks } from './unit-links.ts';

const unit = (name: string, more: Partial<NodeUnit> = {}): NodeUnit => ({
  name,
  masked: false,
  dropins: new Map(),
  ...more,
});
const install = (text: string) => `[Unit]\nDescription=x\n[Service]\nWantedBy=not.this\n[Install]\n${text}\n`;
const none = () => undefined;
const enabled = (name: string, text: string) =>
  unitLinks([unit(name, { contents: install(text), enabled: true })], none).links;
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
    ['no way out of the directory', 'a.service', 'WantedBy=../../x.target\nAlias=../passwd', []],
    ['nothing to install', 'a.service', '', []],
  ])('%s', (_name, name, text, paths) => {
    expect(enabled(name, text).map(({ path }) => path)).toEqual(paths);
  });

  test('a link points to the unit in /etc, or to the template of an instance', () => {
    expect(enabled('a@one.service', 'WantedBy=x.target')[0]?.target).toBe(`${at}/a@.service`);
  });

  test('a unit of the OS is linked to its path in the OS, if its text is known', () => {
    const text = install('WantedBy=multi-user.target');
    expect(unitLinks([unit('chronyd.service', { enabled: true })], () => text).links).toEqual([
      {
        path: `${at}/multi-user.target.wants/chronyd.service`,
        target: '/usr/lib/systemd/system/chronyd.service',
      },
    ]);
    expect(unitLinks([unit('chronyd.service', { enabled: true })], none).links).toEqual([]);
  });

  test('a masked unit is a link to /dev/null, also when it is enabled', () => {
    expect(unitLinks([unit('a.service', { masked: true, enabled: true })], none).links).toEqual([
      { path: `${at}/a.service`, target: '/dev/null' },
    ]);
  });

  test('the links of a disabled unit are removed', () => {
    const disabled = unit('a.service', { contents: install('WantedBy=x.target'), enabled: false });
    expect(unitLinks([disabled], none)).toEqual({ links: [], removals: [`${at}/x.target.wants/a.service`] });
  });

  test('a link that another unit needs is not removed', () => {
    const alias = install('Alias=shared.service');
    const units = [
      unit('a.service', { contents: alias, enabled: false }),
      unit('b.service', { contents: alias, enabled: true }),
    ];
    expect(unitLinks(units, none)).toEqual({
      links: [{ path: `${at}/shared.service`, target: `${at}/b.service` }],
      removals: [],
    });
  });

  test('Also= includes other units', () => {
    const text = (name: string) => (name === 'a.socket' ? install('WantedBy=sockets.target') : undefined);
    const { links } = unitLinks(
      [unit('a.service', { contents: install('Also=a.socket a.service'), enabled: true })],
      text,
    );
    expect(links.map(({ path }) => path)).toEqual([`${at}/sockets.target.wants/a.socket`]);
  });

  test('neither enabled nor disabled changes nothing', () => {
    expect(unitLinks([unit('a.service', { contents: install('WantedBy=x.target') })], none)).toEqual({
      links: [],
      removals: [],
    });
  });
});
