import { describe, expect, it } from 'vitest';
import type { MachineConfig } from '../api/machine-config.ts';
import { annotations } from '../api/names.ts';
import { readNoReboot } from './no-reboot.ts';
import { parseNodeConfig } from './parse-node-config.ts';
import { renderPool } from './render.ts';
import { file, ignition, machineConfig, pool } from './testdata/build.ts';

const unit = (name: string) => ({ name, contents: '[Service]\nExecStart=/bin/true\n' });

function marked(config: MachineConfig, marks: string): MachineConfig {
  return { ...config, metadata: { ...config.metadata, annotations: { [annotations.noReboot]: marks } } };
}

function config(name: string, paths: readonly string[], marks?: string): MachineConfig {
  const files = paths.map((path) => file(path, name));
  const made = machineConfig(
    name,
    ignition({ storage: { files }, systemd: { units: [unit(`${name}.service`)] } }),
  );
  return marks === undefined ? made : marked(made, marks);
}

function render(...configs: readonly MachineConfig[]) {
  const rendering = renderPool({ pool: pool('worker'), configs, controllerVersion: 'v1' });
  if (!rendering.ok) return { problems: rendering.problems };
  const parsed = parseNodeConfig(rendering.rendered);
  const marks = parsed.ok ? [...parsed.config.noReboot] : [];
  return { marks, name: rendering.rendered.metadata.name };
}

describe("an owner's marks", () => {
  it('are carried by the rendered config', () => {
    expect(render(config('a', ['/a', '/b'], '/a, a.service')).marks).toEqual(['/a', 'a.service']);
    expect(render(config('a', ['/a', '/b'], '*')).marks).toEqual(['/a', '/b', 'a.service']);
    expect(render(config('a', ['/a'])).marks).toEqual([]);
  });

  it('hold only for what every MachineConfig that has it marks', () => {
    expect(render(config('a', ['/a'], '/a'), config('b', ['/a'])).marks).toEqual([]);
    expect(render(config('a', ['/a'], '/a'), config('b', ['/a'], '*')).marks).toEqual(['/a', 'b.service']);
  });

  it('are part of what names the rendered config', () => {
    const names = [render(config('a', ['/a'])), render(config('a', ['/a'], '/a'))].map(({ name }) => name);
    expect(new Set(names).size).toBe(2);
  });

  it('that name something else are refused with what they may name', () => {
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

  it('that can not be read are none', () => {
    expect(readNoReboot(marked(machineConfig('a', ignition({})), '{'))).toEqual(new Set());
    expect(readNoReboot(marked(machineConfig('a', ignition({})), '{"a":1}'))).toEqual(new Set());
  });
});
