import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { MachineConfig } from '../api/machine-config.ts';
import { annotations } from '../api/names.ts';
import { parseNodeConfig } from './parse-node-config.ts';
import { renderPool } from './render.ts';
import { limitsInMiB, readNoReboot, recordedLimits } from './rendered-annotations.ts';
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
    expect(readNoReboot(marked(machineConfig('a', ignition({})), '{'))).toEqual(new Set());
    expect(readNoReboot(marked(machineConfig('a', ignition({})), '{"a":1}'))).toEqual(new Set());
  });
});

const MIB = 1024 * 1024;
const source = `data:;base64,${gzipSync(Buffer.alloc(17 * MIB)).toString('base64')}`;
const large = machineConfig(
  'large',
  ignition({ storage: { files: [{ path: '/etc/large', contents: { source, compression: 'gzip' } }] } }),
);
const renderWith = (limits?: ReturnType<typeof limitsInMiB>) =>
  renderPool({ pool: pool('worker'), configs: [large], controllerVersion: '1', ...(limits && { limits }) });

it('a file that decompresses to more than its limit is rejected', () => {
  expect(JSON.stringify(renderWith())).toContain('16777216');
});

it('raised limits are recorded in the rendered config and used to parse it', () => {
  const rendering = renderWith(limitsInMiB({ file: 32 }));
  if (!rendering.ok) throw new Error(JSON.stringify(rendering.problems));
  expect(recordedLimits(rendering.rendered)).toEqual({ fileBytes: 32 * MIB, configBytes: 64 * MIB });
  const parsed = parseNodeConfig(rendering.rendered);
  expect(parsed.ok && parsed.config.files.get('/etc/large')?.contents.length).toBe(17 * MIB);
});

it('a record that can not be parsed is ignored', () => {
  const broken = {
    ...large,
    metadata: { name: 'x', annotations: { [annotations.limits]: '{"fileBytes":-1}' } },
  };
  expect(recordedLimits(broken)).toEqual(limitsInMiB({}));
});
