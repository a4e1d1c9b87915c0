/** What long runs of drawn cases have found, each as small as it shrank to, and each way that it concerns. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { Case } from './cases.ts';
import { SKELETON, STATE_SKELETON } from './topics.ts';
import { file, link, type TreeItem } from './tree-item.ts';
import { formatVerdict, tryCase } from './try-case.ts';

const dir = mkdtempSync(path.join(tmpdir(), 'shale-differential-found-'));
afterAll(() => rmSync(dir, { recursive: true }));

type Config = Case['configs']['A'];

const config = (parts: Partial<Config>): Config => ({
  files: [],
  directories: [],
  links: [],
  units: [],
  users: [],
  ...parts,
});
const newFile = (at: string) => ({
  path: at,
  mode: 0o644,
  overwrite: true,
  contents: { source: 'data:,new' },
});
const unitFor = (target: string) => `[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=${target}\n`;
const UNITS = '/etc/systemd/system';

interface Found {
  readonly base?: readonly TreeItem[];
  readonly A: Partial<Config>;
  readonly B?: Partial<Config>;
  readonly ways: Case['ways'];
  readonly ending?: Case['ending'];
}

const disabled = { name: 'os.service', contents: unitFor('other.target'), enabled: false };

test.each<[string, Found]>([
  [
    "a file in the place of the base's link to a disabled unit goes, and the link stays away",
    {
      base: [
        file('/usr/lib/systemd/system/os.service', unitFor('multi-user.target')),
        link(`${UNITS}/multi-user.target.wants/os.service`, '/usr/lib/systemd/system/os.service'),
      ],
      A: { files: [newFile(`${UNITS}/multi-user.target.wants/os.service`)], units: [disabled] },
      B: { units: [disabled] },
      ways: ['reboot', 'live'],
    },
  ],
  [
    'a file in the place of a directory of the base is refused, also if the config takes away what lies in it',
    {
      base: [
        file(`${UNITS}/over.service`, unitFor('other.target')),
        link(`${UNITS}/other.target.wants/over.service`, `${UNITS}/over.service`),
      ],
      A: {
        files: [newFile(`${UNITS}/other.target.wants`)],
        units: [{ name: 'over.service', enabled: false }],
      },
      ways: ['standard'],
    },
  ],
  [
    'a file comes back to the place of the directories that an image had on the way to its own',
    {
      A: { files: [newFile('/etc/new')] },
      B: { files: [newFile('/etc/new/deep/file')] },
      ways: ['live', 'reboot'],
    },
  ],
  [
    'a path below a link of the config, by a link of the base, is for standard mode alone',
    {
      base: [link('/etc/state', '/var/lib/state')],
      A: {
        files: [newFile('/etc/state/new')],
        links: [{ path: '/var/lib/state', overwrite: true, target: 'x' }],
      },
      ways: ['standard', 'first boot'],
    },
  ],
  [
    'so is a path by a link of the base that the config replaces',
    {
      base: [link('/etc/first', 'second'), link('/etc/second', 'third'), file('/etc/third/x', 'x')],
      A: {
        files: [newFile('/etc/first/x')],
        links: [{ path: '/etc/second', overwrite: true, target: 'x' }],
      },
      ways: ['standard', 'first boot'],
    },
  ],
  [
    'directories on the way to a file, and then to a link, go with the last of them',
    {
      A: { files: [newFile('/etc/pki/tls/certs')] },
      B: {
        links: [
          {
            path: '/etc/pki/tls/certs/ca.pem',
            overwrite: true,
            target: 'a b%c\\d',
            user: { name: 'core' },
            group: { id: 4_000_000_000 },
          },
        ],
        users: [{ name: 'root', sshAuthorizedKeys: ['ssh-ed25519 AAAA test'] }],
      },
      ways: ['live'],
      ending: 'out',
    },
  ],
])('%s', async (name, { base = [], A, B = {}, ways, ending = 'back' }) => {
  const given: Case = {
    layers: [[...SKELETON, ...base]],
    state: STATE_SKELETON,
    configs: { A: config(A), B: config(B) },
    ending,
    ways,
    capabilities: false,
    tmpfiles: false,
    runsTmpfiles: false,
  };
  const place = path.join(dir, name.replaceAll(/\W+/g, '-'));
  expect(formatVerdict(given, await tryCase(place, given))).toBeUndefined();
});
