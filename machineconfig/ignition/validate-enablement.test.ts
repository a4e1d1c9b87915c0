import { expect, test } from 'vitest';
import type { Storage, Unit } from './config.ts';
import { Report } from './report.ts';
import { checkEnablement } from './validate-enablement.ts';

function warningsOf(units: readonly Unit[], storage: Storage = {}): string[] {
  const report = new Report();
  checkEnablement(units, storage, report);
  expect(report.problems).toEqual([]);
  return report.warnings.map(({ path, reason }) => `${path}: ${reason}`);
}
const install = (text: string) => `[Install]\n${text}\n`;
const enabled = (name: string, text: string): Unit => ({ name, enabled: true, contents: install(text) });

test.each<[string, readonly Unit[], readonly string[]]>([
  [
    'a template without an instance',
    [enabled('bar@.service', 'WantedBy=multi-user.target')],
    [
      '$.systemd.units[0].enabled: "bar@.service": WantedBy=multi-user.target: enabling does nothing without an instance, because the template bar@.service has no DefaultInstance=',
    ],
  ],
  [
    'a template with a default instance',
    [enabled('bar@.service', 'WantedBy=x.target\nDefaultInstance=a')],
    [],
  ],
  [
    'a template whose drop-in has a default instance',
    [
      {
        ...enabled('bar@.service', 'WantedBy=x.target'),
        dropins: [{ name: '10-x.conf', contents: install('DefaultInstance=a') }],
      },
    ],
    [],
  ],
  [
    'an instance of a template of the same config',
    [
      { name: 'bar@.service', contents: install('WantedBy=x.target\nAlias=b.socket') },
      { name: 'bar@x.service', enabled: true },
    ],
    ['$.systemd.units[1].enabled: "bar@x.service": Alias=b.socket: bar@x.service may not have that alias'],
  ],
  [
    'names that are none, and specifiers of the host',
    [enabled('a.service', 'WantedBy=x %H.target\nAlias=a.service b.service')],
    [
      '$.systemd.units[0].enabled: "a.service": WantedBy=x: x is not the name of a unit',
      '$.systemd.units[0].enabled: "a.service": WantedBy=%H.target: a specifier in it differs between hosts',
    ],
  ],
  [
    'a unit that systemd does not read',
    [enabled('a.service', 'WantedBy=x.target\nAlso=b')],
    ['$.systemd.units[0].enabled: "a.service": Also=b: not the name of a unit'],
  ],
  [
    'units that are disabled, masked, or the base’s',
    [
      { ...enabled('bar@.service', 'WantedBy=x.target'), enabled: false },
      { ...enabled('foo@.service', 'WantedBy=x.target'), mask: true },
      { name: 'baz@.service', enabled: true },
    ],
    [],
  ],
])('warns of what systemctl refuses: %s', (_name, units, warnings) => {
  expect(warningsOf(units)).toEqual(warnings);
});

test('warns of a file in the place of a link', () => {
  const files = [{ path: '/etc/systemd/system/x.target.wants/a.service' }];
  expect(warningsOf([enabled('a.service', 'WantedBy=x.target')], { files })).toEqual([
    '$.systemd.units[0].enabled: "a.service": WantedBy=x.target has no effect, because the config has /etc/systemd/system/x.target.wants/a.service itself',
  ]);
});
