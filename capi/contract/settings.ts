import { z } from 'zod';
import { DEFAULT_NODE_USER } from '../../machineconfig/reconcilable.ts';
import { NotUnderstood } from './not-understood.ts';

/** What `spec.settings` of the ExtensionConfig says: how objects of Cluster API map to Shale's. */
export interface MachineSettings {
  /** Fields that lead to the image in an infrastructure machine, from `spec`; undefined: no image is taken over. */
  readonly imagePath: readonly string[] | undefined;
  /** Repository of the OS images that values of the image field stand for, without tag and digest. */
  readonly imageRepository: string | undefined;
  /** Absolute path of the file that `ntp` stands for; undefined: `ntp` is not taken over. */
  readonly ntpFile: string | undefined;
  /** The user whose SSH keys may change on running nodes; the operator's --node-user in the workload cluster. */
  readonly nodeUser: string;
}

/** A template has its machine's spec below `spec.template`; the same path names both. */
const ImagePath = z
  .string()
  .regex(/^spec(\.[A-Za-z0-9_-]+)+$/, { error: 'fields from spec on, such as spec.template.spec.image' })
  .transform((path) =>
    path
      .replace(/^spec\.template\.spec\./, 'spec.')
      .split('.')
      .slice(1),
  );

const AbsolutePath = z.string().regex(/^(\/[^/\s]+)+$/, { error: 'an absolute path' });

const Settings = z.object({
  imagePath: ImagePath.optional(),
  imageRepository: z
    .string()
    .regex(/^[a-z0-9.-]+(:\d+)?(\/[a-z0-9._-]+)+$/, {
      error: 'host[:port]/repository, without tag and digest',
    })
    .optional(),
  ntpFile: AbsolutePath.optional(),
  nodeUser: z.string().min(1).default(DEFAULT_NODE_USER),
});

/**
 * @param settings of a request: `spec.settings` of the ExtensionConfig. Keys that Shale doesn't know have no effect.
 * @throws {NotUnderstood} that names each value that can't be used, or that lacks its counterpart.
 */
export function readMachineSettings(settings: Readonly<Record<string, string>>): MachineSettings {
  const parsed = Settings.safeParse(settings);
  if (!parsed.success) throw NotUnderstood.of('spec.settings of the ExtensionConfig', parsed.error);
  const { imagePath, imageRepository, ntpFile, nodeUser } = parsed.data;
  if ((imagePath === undefined) !== (imageRepository === undefined)) {
    throw new NotUnderstood(
      'spec.settings of the ExtensionConfig: imagePath and imageRepository are only of use together; set both or none',
    );
  }
  return { imagePath, imageRepository, ntpFile, nodeUser };
}
