import { z } from 'zod';
import type { DigestedPullspec } from '../../../api/references.ts';
import { digestedImage, type PullOptions, type ToolDeployments } from '../image-tool/image-tool.ts';
import { parseJson, type RunOsCommand } from '../os-command.ts';
import { query } from './transaction.ts';

const DeploymentSchema = z.object({
  osname: z.string(),
  checksum: z.string(),
  serial: z.number().int().nonnegative(),
  booted: z.boolean(),
  pinned: z.boolean().default(false),
  'requested-packages': z.array(z.string()).default([]),
  'requested-base-removals': z.array(z.string()).default([]),
  'container-image-reference': z.string().optional(),
  'container-image-reference-digest': z.string().optional(),
});

/** `rpm-ostree status --json`, as far as it is read here; see transcripts/README.md. */
const StatusSchema = z.object({ deployments: z.array(DeploymentSchema) });

type RpmOstreeStatus = z.infer<typeof StatusSchema>;

const TIMEOUT_MS = 120_000;

/** @returns `rpm-ostree status`; it starts the daemon where it doesn't run. @throws OsCommandError or an Error. */
export async function rpmOstreeStatus(run: RunOsCommand, signal: AbortSignal): Promise<RpmOstreeStatus> {
  return parseRpmOstreeStatus(
    await query(run, ['rpm-ostree', 'status', '--json'], { timeoutMs: TIMEOUT_MS, signal }),
  );
}

/** @throws Error when it isn't what rpm-ostree prints. */
export function parseRpmOstreeStatus(text: string): RpmOstreeStatus {
  const message = 'rpm-ostree status: expected {"deployments": […]}, each with its checksum';
  return parseJson(StatusSchema, text, message);
}

/** @returns what rpm-ostree says of each deployment. */
export function rpmOstreeDeployments({ deployments }: RpmOstreeStatus): ToolDeployments {
  return new Map(
    deployments.map((deployment) => {
      const {
        checksum,
        serial,
        booted,
        pinned,
        'requested-packages': installed,
        'requested-base-removals': removed,
        'container-image-reference': reference,
        'container-image-reference-digest': digest,
      } = deployment;
      const image = reference === undefined ? undefined : imageOfReference(reference, digest);
      const packages = { installed: [...installed].sort(), removed: [...removed].sort() };
      const known = { isBooted: booted, isPinned: pinned, packages };
      return [`${checksum}.${serial}`, image === undefined ? known : { ...known, image }];
    }),
  );
}

/** Ways of signing, each before the transport (ostree-rs-ext, container::OstreeImageReference). */
const REGISTRY_IMAGE = [
  /^ostree-unverified-registry:(?<name>.*)$/,
  /^ostree-remote-registry:[^:]+:(?<name>.*)$/,
  /^ostree-(?:unverified-image|image-signed):(?:docker:\/\/|registry:)(?<name>.*)$/,
  /^ostree-remote-image:[^:]+:(?:docker:\/\/|registry:)(?<name>.*)$/,
];

/**
 * @param reference how rpm-ostree names an image: signature check, transport, name.
 * @param digest what it found there.
 * @returns nothing for an image that is of no registry.
 */
export function imageOfReference(
  reference: string,
  digest: string | undefined,
): DigestedPullspec | undefined {
  for (const form of REGISTRY_IMAGE) {
    const name = form.exec(reference)?.groups?.['name'];
    if (name !== undefined) return digestedImage(name, digest);
  }
  return undefined;
}

/** @returns how rpm-ostree names an image: signature check, transport, name. */
export function imageReference(
  image: DigestedPullspec,
  { mustBeSigned }: Pick<PullOptions, 'mustBeSigned'>,
): string {
  return mustBeSigned ? `ostree-image-signed:docker://${image}` : `ostree-unverified-registry:${image}`;
}
