import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { annotations } from '../api/names.ts';
import { parseNodeConfig } from './parse-node-config.ts';
import { renderPool } from './render.ts';
import { limitsInMiB, recordedLimits } from './rendered-annotations.ts';
import { ignition, machineConfig, pool } from './testdata/build.ts';

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
