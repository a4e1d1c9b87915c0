import { describe, expect, test } from 'vitest';
import { problemsOf, render } from '../test/fixtures/rendering.ts';
import { imageObstacles } from './image-obstacles.ts';
import { parseNodeConfig } from './parse-node-config.ts';
import { formatConfigProblems } from './problem.ts';
import { ignition, machineConfig } from './testdata/build.ts';
import { impossibleConfigs } from './testdata/impossible-configs.ts';

const file = (path: string, more: object = {}) => ({ path, contents: { source: 'data:,a' }, ...more });
const storage = (sections: object) => ignition({ storage: sections });
const units = '/etc/systemd/system';
const unit = (name: string, more: object) => ignition({ systemd: { units: [{ name, ...more }] } });
const keys = ignition({ passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['ssh-ed25519 AAAA a'] }] } });
const installed = '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n';

/** @returns what hinders a config that renders, as text. */
function obstaclesOf(...configs: readonly object[]): string[] {
  const { rendered } = render(configs.map((config, index) => machineConfig(`${index}`, config)));
  const parsed = parseNodeConfig(rendered);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return imageObstacles(parsed.config).map(({ hinders, subject, why }) => `${hinders} ${subject} ${why}`);
}

describe('what no node can have', () => {
  test.each(impossibleConfigs)('$what is refused, with both MachineConfigs', ({ configs }) => {
    const text = problemsOf(configs).map(formatConfigProblems).join('; ');
    expect(text).toContain('50-one');
    expect(text).toContain('51-other');
  });

  test('is said once for each path, by the MachineConfig that has it', () => {
    const configs = [
      machineConfig('50-nested', storage({ files: [file('/home/core/test')] })),
      machineConfig('51-nested2', storage({ files: [file('/home/core/test/test')] })),
    ];
    expect(problemsOf(configs)).toEqual([
      {
        machineConfig: '51-nested2',
        problems: [
          {
            path: '$.storage.files[1].path',
            reason:
              '/home/core/test/test is a file below /home/core/test, which is a file (together with MachineConfig 50-nested)',
            expected: 'a directory at /home/core/test, or another path',
          },
        ],
      },
    ]);
  });

  test.each(['/home', '/root', '/opt', '/usr/local', '/etc', '/usr', '/bin', '/var', '/run', units])(
    'a file or a link in place of %s',
    (path) => {
      const links = [{ path, target: '/var/x' }];
      expect(problemsOf([machineConfig('a', storage({ files: [file(path)] }))])).toHaveLength(1);
      expect(problemsOf([machineConfig('a', storage({ links }))])).toHaveLength(1);
      expect(problemsOf([machineConfig('a', storage({ directories: [{ path }] }))])).toEqual([]);
    },
  );

  test.each([
    ['a relative hard link', storage({ links: [{ path: '/etc/l', target: '../a', hard: true }] })],
    ['half of a surrogate pair', storage({ files: [file('/etc/a\ud800')] })],
    [
      'a directory of drop-ins whose name is too long',
      unit(`${'a'.repeat(247)}.service`, {
        dropins: [{ name: 'a.conf', contents: '[Service]\n' }],
      }),
    ],
  ])('%s', (_what, config) => {
    expect(problemsOf([machineConfig('a', config)])).toMatchObject([{ machineConfig: 'a' }]);
  });
});

describe('what an image alone can not carry', () => {
  test.each<[string, object, RegExp]>([
    ['a whiteout', storage({ files: [file('/etc/.wh.passwd')] }), /\.wh\.passwd is a whiteout in an image/],
    ['a whiteout above a file', storage({ files: [file('/etc/.wh.ssh/x')] }), /which deletes "ssh"/],
    ['a whiteout above a state file', storage({ files: [file('/var/.wh.lib/x')] }), /whiteout/],
    ['a unit with the name of a whiteout', unit('.wh.foo.service', { contents: installed }), /whiteout/],
    [
      'a drop-in with the name of a whiteout',
      unit('a.service', { dropins: [{ name: '.wh.a.conf', contents: '[Service]\n' }] }),
      /whiteout/,
    ],
    [
      'a hard link to a file that is not of the config',
      storage({ links: [{ path: '/etc/l', target: '/etc/machine-id', hard: true }] }),
      /is no file of this config/,
    ],
    [
      'a hard link to a symbolic link',
      storage({
        links: [
          { path: '/etc/a', target: 'b' },
          { path: '/etc/l', target: '/etc/a', hard: true },
        ],
      }),
      /which is a symbolic link of this config/,
    ],
    [
      "the kernel's modules by their other name",
      storage({ files: [file('/lib/modules/x')] }),
      /operating system/,
    ],
    ["Shale's own file", storage({ files: [file('/usr/share/shale/machine-config.json')] }), /file of Shale/],
  ])('%s', (_what, config, why) => {
    expect(obstaclesOf(config)).toEqual([expect.stringMatching(/^image /)]);
    expect(obstaclesOf(config)[0]).toMatch(why);
  });

  test.each<[string, object[]]>([
    ['the file with SSH keys', [keys, storage({ files: [file('/etc/ssh/authorized_keys.d/core')] })]],
    [
      'a preset',
      [
        unit('os.service', { enabled: true }),
        storage({ files: [file('/etc/systemd/system-preset/20-shale.preset')] }),
      ],
    ],
  ])('%s beside the config', (_what, configs) => {
    expect(obstaclesOf(...configs)).toEqual([expect.stringMatching(/^image /)]);
  });
});

test.each<[string, object[]]>([
  ['directories above files', [storage({ files: [file('/etc/a/b')], directories: [{ path: '/etc/a' }] })]],
  [
    'a hard link to a file, and one to that',
    [
      storage({
        files: [file('/etc/a')],
        links: [
          { path: '/etc/b', target: '/etc/c', hard: true },
          { path: '/etc/c', target: '/etc/a', hard: true },
        ],
      }),
    ],
  ],
  [
    'a hard link to a file of the node in the same file system',
    [storage({ links: [{ path: '/var/lib/l', target: '/var/lib/a', hard: true }] })],
  ],
  [
    "a unit's link that is written down, too",
    [
      unit('foo.service', { contents: installed, enabled: true }),
      storage({
        links: [{ path: `${units}/multi-user.target.wants/foo.service`, target: `${units}/foo.service` }],
      }),
    ],
  ],
  [
    'names that only begin alike',
    [storage({ files: [file('/etc/a'), file('/etc/ab/c'), file('/etc/a.wh.b')] })],
  ],
  [
    'keys and a directory of them',
    [keys, storage({ directories: [{ path: '/home/core/.ssh', mode: 448 }] })],
  ],
])('%s is no obstacle', (_what, configs) => {
  expect(obstaclesOf(...configs)).toEqual([]);
});
