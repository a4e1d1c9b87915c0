import { describe, expect, it } from 'vitest';
import { formatActions } from '../api/disruption-action.ts';
import type { MachineConfig } from '../api/machine-config.ts';
import { annotations } from '../api/names.ts';
import { readMarks } from './owner-marks.ts';
import { parseNodeConfig } from './parse-node-config.ts';
import { renderPool } from './render.ts';
import { file, ignition, machineConfig, pool } from './testdata/build.ts';

const unit = (name: string) => ({ name, contents: '[Service]\nExecStart=/bin/true\n' });

interface Marks {
  readonly noReboot?: string;
  readonly actions?: string;
}

function marked(config: MachineConfig, { noReboot, actions }: Marks): MachineConfig {
  const own = {
    ...(noReboot === undefined ? {} : { [annotations.noReboot]: noReboot }),
    ...(actions === undefined ? {} : { [annotations.actions]: actions }),
  };
  return { ...config, metadata: { ...config.metadata, annotations: own } };
}

function config(name: string, paths: readonly string[], marks: string | Marks = {}): MachineConfig {
  const files = paths.map((path) => file(path, name));
  const made = machineConfig(
    name,
    ignition({ storage: { files }, systemd: { units: [unit(`${name}.service`)] } }),
  );
  return marked(made, typeof marks === 'string' ? { noReboot: marks } : marks);
}

function render(...configs: readonly MachineConfig[]) {
  const rendering = renderPool({ pool: pool('worker'), configs, controllerVersion: 'v1' });
  if (!rendering.ok) return { problems: rendering.problems };
  const parsed = parseNodeConfig(rendering.rendered);
  const marks = parsed.ok ? [...parsed.config.marks] : [];
  return {
    marks: marks.map(([subject, actions]) =>
      actions.length === 0 ? subject : `${subject}: ${formatActions(actions)}`,
    ),
    name: rendering.rendered.metadata.name,
  };
}

describe("an owner's marks", () => {
  it('are annotations of the rendered config', () => {
    expect(render(config('a', ['/a', '/b'], '/a, a.service')).marks).toEqual(['/a', 'a.service']);
    expect(render(config('a', ['/a', '/b'], '*')).marks).toEqual(['/a', '/b', 'a.service']);
    expect(render(config('a', ['/a'])).marks).toEqual([]);
  });

  it('apply only to entries that every MachineConfig containing them marks', () => {
    expect(render(config('a', ['/a'], '/a'), config('b', ['/a'])).marks).toEqual([]);
    expect(render(config('a', ['/a'], '/a'), config('b', ['/a'], '*')).marks).toEqual(['/a', 'b.service']);
  });

  it('affect the name of the rendered config', () => {
    const names = [render(config('a', ['/a'])), render(config('a', ['/a'], '/a'))].map(({ name }) => name);
    expect(new Set(names).size).toBe(2);
  });

  it('of unknown entries are rejected with the known ones', () => {
    expect(render(config('a', ['/a'], '/other')).problems).toEqual([
      {
        machineConfig: 'a',
        problems: [
          {
            path: `metadata.annotations[${annotations.noReboot}]`,
            reason: '"/other" is no file or unit of this MachineConfig',
            expected: 'paths of its own files and names of its own units, separated by commas, or *',
          },
        ],
      },
    ]);
  });

  it('that can not be parsed are ignored', () => {
    for (const text of ['{', '{"a":1}', '{"/a":["Stop(a.service)"]}', '{"/a":[]}', '[["/a"]]']) {
      const empty = machineConfig('a', ignition({}));
      expect(readMarks(marked(empty, { noReboot: text, actions: text })), text).toEqual(new Map());
    }
  });
});

describe("an owner's marks with actions", () => {
  const reload = 'Reload(a.service)';
  const restart = 'Restart(b.service)';
  const of = (...lines: string[]) => ({ actions: lines.join('\n') });

  it.each<[string, readonly MachineConfig[], readonly string[]]>([
    [
      'a file and a unit',
      [config('a', ['/a', '/b'], of(`/a: ${reload}`, `  a.service: Drain, ${restart}  `, ''))],
      [`/a: ${reload}`, `a.service: Drain, ${restart}`],
    ],
    ['None', [config('a', ['/a'], of('/a: None'))], ['/a']],
    ['Reboot', [config('a', ['/a'], of('/a: Reboot'))], ['/a: Reboot']],
    [
      'all, and one that needs another',
      [config('a', ['/a', '/b'], of(`*: ${reload}`, '/b: None'))],
      ['/b', `/a: ${reload}`, `a.service: ${reload}`],
    ],
    ['a subject with a colon', [config('a', ['/a: b'], of(`/a: b: ${reload}`))], [`/a: b: ${reload}`]],
    [
      'both annotations: the actions',
      [config('a', ['/a', '/b'], { noReboot: '/a /b', ...of(`/a: ${reload}`) })],
      ['/b', `/a: ${reload}`],
    ],
    [
      'several owners that agree',
      [config('a', ['/c'], of(`/c: ${reload}`)), config('b', ['/c'], of(`/c: ${reload}`))],
      [`/c: ${reload}`],
    ],
    [
      'several owners, of whom one needs nothing',
      [config('a', ['/c'], '/c'), config('b', ['/c'], of(`/c: ${reload}`))],
      [`/c: ${reload}`],
    ],
    [
      'several owners that name different actions: none',
      [config('a', ['/c'], of(`/c: ${restart}`)), config('b', ['/c'], of(`/c: ${reload}`))],
      [],
    ],
    [
      'an owner who marks nothing: none',
      [config('a', ['/c'], of(`/c: ${restart}`)), config('b', ['/c'])],
      [],
    ],
    [
      'an owner who marks nothing between others: none',
      [config('a', ['/c'], of(`/c: ${restart}`)), config('b', ['/c']), config('c', ['/c'], '/c')],
      [],
    ],
  ])('%s', (_name, configs, expected) => {
    expect(render(...configs)).toMatchObject({ marks: expected });
  });

  it.each([
    ['/a', 'has no ": "'],
    ['/a: ', 'has no ": "'],
    [': Drain', 'has no ": "'],
    ['/a: Stop(a.service)', 'has "Stop(a.service)", which is no action'],
    ['/a: Restart', 'has "Restart", which is no action'],
    ['/a: Restart(a)', 'has "Restart(a)", which is no action'],
    ['/a: Drain,', 'has "", which is no action'],
    ['/a: Reboot, Drain', 'has Reboot beside other actions'],
    ['/a: None, Drain', 'has None beside other actions'],
    [`/a: ${Array(11).fill('Drain').join(', ')}`, 'has more than 10 actions'],
    ['/other: Drain', '"/other" is no file or unit of this MachineConfig'],
  ])('%s is rejected', (line, reason) => {
    expect(render(config('a', ['/a'], of(line))).problems).toEqual([
      {
        machineConfig: 'a',
        problems: [
          expect.objectContaining({
            path: `metadata.annotations[${annotations.actions}]`,
            reason: expect.stringContaining(reason),
          }),
        ],
      },
    ]);
  });

  it('affect the name of the rendered config', () => {
    const names = [{}, of('/a: Drain'), of('/a: Reboot'), { noReboot: '/a' }].map(
      (marks) => render(config('a', ['/a'], marks)).name,
    );
    expect(new Set(names).size).toBe(4);
  });
});
