import { expect, test } from 'vitest';
import type { IgnitionConfig, Luks } from './config.ts';
import { lowestIgnitionVersion } from './lowest-version.ts';

const luks = (more: Partial<Luks> = {}): Partial<IgnitionConfig> => ({
  storage: { luks: [{ name: 'data', device: '/dev/vdb', clevis: { tpm2: true }, ...more }] },
});
const format = (format: string): Partial<IgnitionConfig> => ({
  storage: { filesystems: [{ device: '/dev/vdb', format, wipeFilesystem: true }] },
});

test.each<[string, Partial<IgnitionConfig>, string]>([
  ['nothing', {}, '3.2.0'],
  ['LUKS', luks(), '3.2.0'],
  ['a file system', format('xfs'), '3.2.0'],
  ['a file system that is erased', format('none'), '3.3.0'],
  ['kernel arguments', { kernelArguments: { shouldExist: ['quiet'] } }, '3.3.0'],
  ['a LUKS volume that passes discards on', luks({ discard: true }), '3.4.0'],
  ['a key of an S3 access point', luks({ keyFile: { source: 'arn:aws:s3:::bucket/key' } }), '3.4.0'],
  ['a crypto card', luks({ cex: { enabled: true } }), '3.5.0'],
])('the lowest version with %s', (_what, sections, expected) => {
  expect(lowestIgnitionVersion({ ...sections, ignition: { version: '3.5.0' } })).toBe(expected);
});
