import { z } from 'zod';
import { PACKAGE_FORMATS } from './package.ts';

const Package = z.strictObject({
  name: z.string(),
  version: z.string(),
  architecture: z.string(),
  vendor: z.string().optional(),
});

/**
 * What is kept of a file's content, because it is reported. A record of an image has these, so fields are added and
 * never renamed.
 */
export const FileFacts = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('packages'),
    format: z.enum(PACKAGE_FORMATS),
    packages: z.array(Package),
  }),
  /** os-release(5), the fields that name a release. */
  z.strictObject({ kind: z.literal('osRelease'), fields: z.record(z.string(), z.string()) }),
  /** A file of kargs.d (bootc, "Kernel arguments"); no architectures: all. */
  z.strictObject({
    kind: z.literal('kernelArguments'),
    arguments: z.array(z.string()),
    architectures: z.array(z.string()).optional(),
  }),
  /** sysusers.d(5): `id` is a number, a pair of them, a path whose owner it is, or `-`. */
  z.strictObject({
    kind: z.literal('sysusers'),
    accounts: z.array(z.strictObject({ type: z.enum(['user', 'group']), name: z.string(), id: z.string() })),
  }),
  /** systemd.preset(5), its rules one a line. */
  z.strictObject({ kind: z.literal('presets'), rules: z.array(z.string()) }),
  /** `why` is a clause without a subject. */
  z.strictObject({ kind: z.literal('unreadable'), why: z.string() }),
]);

export type FileFacts = z.infer<typeof FileFacts>;
