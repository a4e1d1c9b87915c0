import { z } from 'zod';
import type { DigestedPullspec } from '../../../api/references.ts';
import { noPackages } from '../../../machineconfig/os-packages.ts';
import type { NodeDeployment } from '../backend.ts';
import { digestedImage, type ToolDeployment, type ToolDeployments } from '../image-tool/image-tool.ts';
import { parseJson, type RunOsCommand } from '../os-command.ts';

const BootEntrySchema = z.object({
  image: z
    .object({
      image: z.object({ image: z.string(), transport: z.string() }),
      imageDigest: z.string(),
    })
    .nullish(),
  incompatible: z.boolean(),
  pinned: z.boolean(),
  // Since bootc 1.7.0; one without it can't.
  softRebootCapable: z.boolean().default(false),
  ostree: z
    .object({ checksum: z.string(), deploySerial: z.number().int().nonnegative(), stateroot: z.string() })
    .nullish(),
  /** Staged, and bootc doesn't finalize it at shutdown. */
  downloadOnly: z.boolean().default(false),
  // The format is not final (bootc, experimental-composefs.md).
  composefs: z
    .object({
      /** Identifies the deployment: the fs-verity digest of its image. */
      verity: z.string().nullish(),
      bootType: z.string().nullish(),
      bootloader: z.string().nullish(),
    })
    .nullish(),
});

/** bootc's docs/src/host-v1.schema.json, as far as it is read here; see transcripts/README.md. */
const HostSchema = z.object({
  apiVersion: z.literal('org.containers.bootc/v1'),
  kind: z.literal('BootcHost'),
  status: z.object({
    type: z.string().nullish(),
    staged: BootEntrySchema.nullish(),
    booted: BootEntrySchema.nullish(),
    rollback: BootEntrySchema.nullish(),
    otherDeployments: z.array(BootEntrySchema).default([]),
    /** The booted deployment is not the first of the bootloader's entries. */
    rollbackQueued: z.boolean().default(false),
    readOnly: z.boolean().default(false),
  }),
});

/** A host as `bootc status` reports it. */
export type BootcHost = z.infer<typeof HostSchema>;

/** A deployment as `bootc status` reports it. */
export type BootcEntry = z.infer<typeof BootEntrySchema>;

const TIMEOUT_MS = 120_000;

/** @returns `bootc status`. @throws OsCommandError or an Error. */
export async function bootcStatus(run: RunOsCommand, signal: AbortSignal): Promise<BootcHost> {
  const command = ['bootc', 'status', '--format=json', '--format-version=1'] as const;
  return parseBootcStatus(await run([...command], { timeoutMs: TIMEOUT_MS, signal }));
}

/** @throws Error for anything but version 1 of the format. */
export function parseBootcStatus(text: string): BootcHost {
  const message = 'bootc status: expected a BootcHost of org.containers.bootc/v1 (bootc 1.1.0)';
  return parseJson(HostSchema, text, message);
}

/** @returns what bootc says of each deployment that ostree keeps. */
export function bootcDeployments({ status }: BootcHost): ToolDeployments {
  const { staged, booted, rollback, otherDeployments } = status;
  const deployments = new Map<string, ToolDeployment>();
  for (const entry of [staged, booted, rollback, ...otherDeployments]) {
    if (entry?.ostree === undefined || entry.ostree === null) continue;
    const { checksum, deploySerial } = entry.ostree;
    deployments.set(`${checksum}.${deploySerial}`, {
      isBooted: entry === booted,
      isPinned: entry.pinned,
      // One on which packages were installed has no image here.
      packages: noPackages,
      ...asBooted(entry),
    });
  }
  return deployments;
}

/** @returns what a node would boot with a deployment, as bootc reports it. */
export function asBooted(entry: BootcEntry): Pick<NodeDeployment, 'image' | 'canSoftReboot'> {
  return { image: deploymentImage(entry), canSoftReboot: entry.softRebootCapable || undefined };
}

/** Only a registry's images can be had again by their name. */
function deploymentImage({ image }: BootcEntry): DigestedPullspec | undefined {
  if (image === undefined || image === null || image.image.transport !== 'registry') return undefined;
  return digestedImage(image.image.image, image.imageDigest);
}

/**
 * Why bootc can't manage a host with ostree; undefined when it can.
 *
 * @param host what it says itself.
 */
export function bootcObstacle({ status }: BootcHost): string | undefined {
  const { booted, readOnly } = status;
  if (booted === undefined || booted === null) return 'bootc has not booted this host';
  if (booted.incompatible) {
    return 'the booted deployment was changed by rpm-ostree (packages, overrides), and bootc refuses to update it';
  }
  if (readOnly) return 'the physical root is read-only';
  return undefined;
}
