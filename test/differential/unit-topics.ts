import type { Topic } from './topics.ts';
import { file, link } from './tree-item.ts';

const OS = '/usr/lib/systemd/system';
const ETC = '/etc/systemd/system';
const WANTS = `${ETC}/multi-user.target.wants`;

const service = (install: string) => `[Service]\nExecStart=/bin/true\n[Install]\n${install}\n`;
const WANTED = service('WantedBy=multi-user.target');

/** What operating systems have of units, and what admins and vendors have made of them under /etc. */
export const UNIT_TOPICS: readonly (Topic & { readonly units: readonly string[] })[] = [
  {
    name: 'an enabled unit',
    base: [[file(`${OS}/os.service`, WANTED), link(`${WANTS}/os.service`, `${OS}/os.service`)]],
    paths: [`${WANTS}/os.service`, `${ETC}/os.service.d/20.conf`, `${ETC}/os.service`],
    units: ['os.service'],
  },
  {
    name: 'a disabled unit',
    base: [[file(`${OS}/off.service`, WANTED)]],
    paths: [`${WANTS}/off.service`],
    units: ['off.service'],
  },
  {
    name: 'a unit of the config alone',
    paths: [`${WANTS}/own.service`, `${ETC}/own.service.d`, `${WANTS}`],
    units: ['own.service', 'own.socket'],
  },
  {
    name: 'two units with one alias',
    base: [
      [
        file(`${OS}/a.service`, service('Alias=display.service')),
        file(`${OS}/b.service`, service('Alias=display.service\nWantedBy=multi-user.target')),
        link(`${ETC}/display.service`, `${OS}/a.service`),
      ],
    ],
    paths: [`${ETC}/display.service`],
    units: ['a.service', 'b.service'],
  },
  {
    name: 'templates',
    base: [
      [
        file(`${OS}/getty@.service`, service('WantedBy=getty.target\nDefaultInstance=tty1')),
        file(`${OS}/plain@.service`, WANTED),
        link(`${WANTS}/plain@base.service`, `${OS}/plain@.service`),
      ],
    ],
    paths: [`${ETC}/getty.target.wants/getty@tty1.service`],
    units: [
      'getty@.service',
      'getty@tty2.service',
      'plain@.service',
      'plain@base.service',
      'own@.service',
      'own@x.service',
    ],
  },
  {
    name: 'a unit that the base masks',
    base: [[file(`${OS}/masked.service`, WANTED), link(`${ETC}/masked.service`, '/dev/null')]],
    paths: [`${ETC}/masked.service`],
    units: ['masked.service'],
  },
  {
    name: 'a unit that the base overrides',
    base: [
      [
        file(`${OS}/over.service`, WANTED),
        file(`${ETC}/over.service`, service('WantedBy=other.target')),
        link(`${ETC}/other.target.wants/over.service`, `${ETC}/over.service`),
      ],
    ],
    paths: [`${ETC}/over.service`, `${ETC}/other.target.wants`],
    units: ['over.service'],
  },
  {
    name: 'links outside of [Install]',
    base: [
      [
        file(`${OS}/extra.service`, WANTED),
        link(`${ETC}/extra.target.wants/extra.service`, `${OS}/extra.service`),
        file(`${OS}/none.service`, '[Service]\nExecStart=/bin/true\n'),
        link(`${WANTS}/none.service`, `${OS}/none.service`),
      ],
    ],
    paths: [`${ETC}/extra.target.wants/extra.service`],
    units: ['extra.service', 'none.service'],
  },
  {
    name: 'Also',
    base: [
      [
        file(`${OS}/also.service`, service('WantedBy=multi-user.target\nAlso=also.socket')),
        file(`${OS}/also.socket`, '[Socket]\nListenStream=/run/x\n[Install]\nWantedBy=sockets.target\n'),
        link(`${ETC}/sockets.target.wants/also.socket`, `${OS}/also.socket`),
      ],
    ],
    paths: [`${ETC}/sockets.target.wants/also.socket`],
    units: ['also.service', 'also.socket'],
  },
  {
    name: 'drop-ins of the base',
    base: [
      [
        file(`${OS}/dropped.service`, WANTED),
        file(`${OS}/dropped.service.d/10-vendor.conf`, '[Service]\nNice=1\n'),
        file(`${ETC}/dropped.service.d/10-base.conf`, '[Service]\nNice=2\n'),
      ],
    ],
    paths: [`${ETC}/dropped.service.d/10-base.conf`, `${ETC}/dropped.service.d`],
    units: ['dropped.service'],
  },
];

/** Texts that a config gives a unit; the first: none. */
export const UNIT_TEXTS: readonly (string | undefined)[] = [
  undefined,
  WANTED,
  '[Service]\nExecStart=/bin/true\n',
  service('WantedBy=other.target\nAlias=display.service'),
  service('RequiredBy=other.target\nDefaultInstance=one'),
];

/** Texts of drop-ins; systemd reads no [Install] of them. */
export const DROPIN_TEXTS: readonly string[] = [
  '[Service]\nNice=5\n',
  '[Install]\nWantedBy=dropin.target\n',
  '',
];
