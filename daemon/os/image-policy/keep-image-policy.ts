import { createHash } from 'node:crypto';
import path from 'node:path';
import { z } from 'zod';
import { errorMessage } from '../../../api/error-message.ts';
import { plural } from '../../../api/plural.ts';
import { type DigestedPullspec, DigestedPullspecSchema } from '../../../api/references.ts';
import { parseReference } from '../../../image/reference.ts';
import { pullSources } from '../../../image/registry/pull-sources.ts';
import { HostTree } from '../../files/host-tree.ts';
import { putFile, removeFileOfOwnDirectory } from '../../files/put-file.ts';
import { contentDigestAt } from '../../files/read-tree.ts';
import { stateRecord } from '../../records/durable-json.ts';
import type { ManagedPaths } from '../../records/managed-paths.ts';
import { nodeRegistriesConf } from '../ostree/registry-source.ts';
import {
  type AttachmentPlan,
  formatAttachments,
  planAttachments,
  type RegistriesFile,
} from './attachment-entries.ts';
import {
  type MergedPolicy,
  mergePolicy,
  type OwnEntries,
  scopeOf,
  type VerifiedImage,
} from './policy-entries.ts';
import { POLICY_FILE } from './signature-policy.ts';

const REGISTRIES_DIRECTORY = '/etc/containers/registries.d';
/** A name that no admin's file has: registries.d has a file for each origin of settings. */
const ATTACHMENTS_FILE = `${REGISTRIES_DIRECTORY}/shale-image-signatures.yaml`;
/** No policy that a person keeps comes near it. */
const MAX_BYTES = 1024 * 1024;

/** What a host's own tools do with the pool's images. */
export type ImagePolicyState =
  /** They need no signature: the node is in standard mode, signing is disabled, or Shale alone pulls on this host. */
  | { readonly kind: 'not-required' }
  /** They take only images of these repositories that the cluster signed. */
  | { readonly kind: 'applied'; readonly repositories: readonly string[] }
  /** Shale alone verifies. */
  | {
      readonly kind: 'incomplete';
      readonly reason: 'OwnedByMachineConfig' | 'KeptAsItIs' | 'InvalidPolicy' | 'NotWritten';
      /** In whole clauses: what is missing, and what to do. */
      readonly why: string;
    };

export interface ImagePolicyHost {
  /** The running root. */
  readonly root: string;
  /** Files and links of the node's configs, which Shale writes as they have them or not at all. */
  readonly owned: ReadonlySet<string>;
}

const PolicyRecord = z.object({
  version: z.literal(1),
  /** What the entries are for, the latest last. */
  images: z.array(z.object({ image: DigestedPullspecSchema, publicKey: z.string() })),
  /** Keys by scope, also those of an interrupted change. */
  entries: z.record(z.string(), z.array(z.string())),
  /** The policy as it was before; it comes back as it was unless somebody has changed the file since. */
  before: z.string(),
  /** SHA-256 of the policy as Shale wrote it. */
  written: z.string(),
  /** And as it is about to write it, while files change. */
  coming: z.string().exactOptional(),
});
type PolicyRecord = z.infer<typeof PolicyRecord>;
const policyRecord = stateRecord('image-policy.json', PolicyRecord);

/**
 * Has the host's own tools (bootc, rpm-ostree, podman, the container runtime) take only signed images from the
 * repositories of some images. Harmless to repeat; an interrupted change is ended by the next one.
 *
 * @param images that the node may pull, the latest last; none: Shale's entries are taken out again.
 * @returns never throws for what the host's files are like: Shale has verified the images already.
 * @throws RecordError
 */
export async function keepImagePolicy(
  host: ImagePolicyHost,
  images: readonly VerifiedImage[],
): Promise<{ readonly state: ImagePolicyState; readonly written: readonly string[] }> {
  const { root } = host;
  const record = await policyRecord.read(root);
  if (record === undefined && images.length === 0) return unchanged({ kind: 'not-required' });
  try {
    return await change(host, images, record);
  } catch (error) {
    const why = errorMessage(error);
    return unchanged({ kind: 'incomplete', reason: 'NotWritten', why });
  }
}

/**
 * @returns the images that the host's policy was last written for; none where it has no entries of Shale's. @throws
 * RecordError
 */
export async function imagesOfPolicy(root: string): Promise<readonly VerifiedImage[]> {
  const images = (await policyRecord.read(root))?.images ?? [];
  return images.map(({ image, publicKey }) => ({ image: image as DigestedPullspec, publicKey }));
}

/**
 * The files as Shale wrote them, for the merge of /etc: they are no edits of an admin's, so another image's own policy
 * takes their place, and Shale's entries are added to that once it runs.
 *
 * @throws RecordError
 */
export async function writtenPolicyFiles(root: string): Promise<ManagedPaths> {
  const record = await policyRecord.read(root);
  if (record === undefined) return new Map();
  const text = await readFileOf(root, POLICY_FILE);
  const files = [...(text !== undefined && isWritten(record, text) ? [POLICY_FILE] : []), ATTACHMENTS_FILE];
  const digests = await Promise.all(
    files.map(async (name) => [name, [await contentDigestAt(root, name)]] as const),
  );
  return new Map(digests);
}

type Kept = Awaited<ReturnType<typeof keepImagePolicy>>;

function unchanged(state: ImagePolicyState): Kept {
  return { state, written: [] };
}

async function change(
  { root, owned }: ImagePolicyHost,
  images: readonly VerifiedImage[],
  record: PolicyRecord | undefined,
): Promise<Kept> {
  const text = await readFileOf(root, POLICY_FILE);
  if (text === undefined) {
    if (images.length === 0) return forget(root, []);
    const why = `${POLICY_FILE} is not a regular file; add it to a MachineConfig (containers-policy.json(5))`;
    return unchanged({ kind: 'incomplete', reason: 'InvalidPolicy', why });
  }
  const attachments = await attachmentsOf(root, images);
  const entries: OwnEntries = record?.entries ?? {};
  const merged = mergePolicy(text, entries, readable(images, attachments));
  if (merged.kind === 'unusable') {
    return unchanged({ kind: 'incomplete', reason: 'InvalidPolicy', why: `${POLICY_FILE} ${merged.why}` });
  }
  if (owned.has(POLICY_FILE)) return unchanged(ownedState(text, images));
  const former = record !== undefined && isWritten(record, text) ? record : undefined;
  const before = former?.before ?? merged.without;
  const isEmpty = Object.keys(merged.entries).length === 0;
  const wanted = isEmpty ? before : merged.text;
  const written = wanted === text ? [] : [POLICY_FILE];
  const write = async () => {
    if (written.length > 0) await putFile(root, POLICY_FILE, { contents: Buffer.from(wanted), mode: 0o644 });
  };
  if (isEmpty) {
    await write();
    const gone = await forget(root, written);
    return { ...gone, state: stateOf(merged, images, attachments) };
  }
  const kept = { version: 1, images, before } as const;
  const coming = sha256(wanted);
  // Both the old and the new are on record while files change: after a crash none is forgotten.
  await policyRecord.write(root, {
    ...kept,
    entries: union(entries, merged.entries),
    written: former === undefined ? coming : sha256(text),
    coming,
  });
  // Signatures are asked for last: until their place is known, nothing could be pulled.
  const file = await writeAttachments(root, attachments.write, owned);
  await write();
  await policyRecord.write(root, { ...kept, entries: merged.entries, written: coming });
  return { state: stateOf(merged, images, attachments), written: [...file, ...written] };
}

/** @returns whether Shale wrote a policy, or was about to when it was interrupted. */
function isWritten({ written, coming }: PolicyRecord, text: string): boolean {
  return [written, coming].includes(sha256(text));
}

/** What no entry is left for goes. @param written what was written before. */
async function forget(root: string, written: readonly string[]): Promise<Kept> {
  const isThere = (await readFileOf(root, ATTACHMENTS_FILE)) !== undefined;
  if (isThere) await removeFileOfOwnDirectory(root, ATTACHMENTS_FILE);
  await policyRecord.remove(root);
  return { state: { kind: 'not-required' }, written };
}

/** Those whose signatures the tools can find: for others an entry would refuse the image itself. */
function readable(
  images: readonly VerifiedImage[],
  { blockedImages }: Pick<HostAttachments, 'blockedImages'>,
): readonly VerifiedImage[] {
  return images.filter(({ image }) => !blockedImages.has(image));
}

interface HostAttachments extends AttachmentPlan {
  readonly blockedImages: ReadonlySet<string>;
}

async function attachmentsOf(root: string, images: readonly VerifiedImage[]): Promise<HostAttachments> {
  if (images.length === 0) return { write: [], blocked: [], invalid: [], blockedImages: new Set() };
  const conf = await nodeRegistriesConf(root);
  const places = new Map(
    images.map(({ image }) => [
      image,
      pullSources(parseReference(image), conf).flatMap(({ kind, reference }) =>
        kind === 'open' ? [scopeOf(reference)] : [],
      ),
    ]),
  );
  const plan = planAttachments(await registriesFiles(root), [...places.values()].flat());
  const blocked = new Set(plan.blocked.map(({ repository }) => repository));
  const isBlocked = (repositories: readonly string[]) => repositories.some((each) => blocked.has(each));
  const blockedImages = [...places].filter(([, repositories]) => isBlocked(repositories));
  return { ...plan, blockedImages: new Set(blockedImages.map(([image]) => image)) };
}

async function registriesFiles(root: string): Promise<readonly RegistriesFile[]> {
  await using tree = new HostTree({ root });
  const directory = await tree.directory(REGISTRIES_DIRECTORY);
  const names = ((await directory?.list()) ?? []).filter((name) => name.endsWith('.yaml')).sort();
  const files: RegistriesFile[] = [];
  for (const base of names) {
    const name = `${REGISTRIES_DIRECTORY}/${base}`;
    if (name === ATTACHMENTS_FILE) continue;
    const text = await directory?.read(base, MAX_BYTES);
    if (text !== undefined) files.push({ name, text: text.toString('utf8') });
  }
  return files;
}

/** @returns the file, where it was written or removed. */
async function writeAttachments(
  root: string,
  repositories: readonly string[],
  owned: ReadonlySet<string>,
): Promise<readonly string[]> {
  if (owned.has(ATTACHMENTS_FILE)) return [];
  const wanted = formatAttachments(repositories);
  const present = await readFileOf(root, ATTACHMENTS_FILE);
  if (wanted === present) return [];
  if (wanted === undefined) {
    await removeFileOfOwnDirectory(root, ATTACHMENTS_FILE);
    return [];
  }
  await putFile(root, ATTACHMENTS_FILE, { contents: Buffer.from(wanted), mode: 0o644 });
  return [ATTACHMENTS_FILE];
}

function stateOf(
  { open }: Extract<MergedPolicy, { kind: 'merged' }>,
  images: readonly VerifiedImage[],
  { blocked, invalid }: HostAttachments,
): ImagePolicyState {
  if (images.length === 0) return { kind: 'not-required' };
  const why = [
    ...blocked.map(
      ({ repository, file }) =>
        `${file} has an entry for ${repository} that doesn't set use-sigstore-attachments: set it to true`,
    ),
    ...invalid.map((file) => `${file} is not valid (containers-registries.d(5))`),
    ...(open.length === 0 || blocked.length > 0
      ? []
      : [
          `an entry of ${POLICY_FILE} takes ${open.join(' and ')} unsigned: remove it, or let it require the signature`,
        ]),
  ];
  if (why.length > 0) return { kind: 'incomplete', reason: 'KeptAsItIs', why: why.join('; ') };
  return { kind: 'applied', repositories: repositoriesOf(images) };
}

/** The config's policy is checked instead. */
function ownedState(text: string, images: readonly VerifiedImage[]): ImagePolicyState {
  if (images.length === 0) return { kind: 'not-required' };
  const asked = mergePolicy(text, {}, []);
  const needed = mergePolicy(text, {}, images);
  if (asked.kind !== 'merged' || needed.kind !== 'merged')
    throw new TypeError(`${POLICY_FILE} changed meanwhile`);
  const missing = Object.keys(needed.entries);
  if (missing.length === 0 && needed.open.length === 0) {
    return { kind: 'applied', repositories: repositoriesOf(images) };
  }
  const scopes = missing.length > 0 ? missing : needed.open;
  return {
    kind: 'incomplete',
    reason: 'OwnedByMachineConfig',
    why: `a MachineConfig contains ${POLICY_FILE}, which lacks ${plural(scopes.length, 'entry', 'entries')} of type sigstoreSigned for ${scopes.join(' and ')}; add it, or leave the file to Shale`,
  };
}

function repositoriesOf(images: readonly VerifiedImage[]): readonly string[] {
  return [...new Set(images.map(({ image }) => scopeOf(parseReference(image))))].sort();
}

async function readFileOf(root: string, name: string): Promise<string | undefined> {
  await using tree = new HostTree({ root });
  const location = await tree.locate(name);
  if (location.missingParents.length > 0) return undefined;
  const directory = await tree.parentOf(location.name);
  return (await directory.read(path.posix.basename(location.name), MAX_BYTES))?.toString('utf8');
}

function union(a: OwnEntries, b: OwnEntries): OwnEntries {
  const scopes = [...new Set([...Object.keys(a), ...Object.keys(b)])].sort();
  return Object.fromEntries(
    scopes.map((scope) => [scope, [...new Set([...(a[scope] ?? []), ...(b[scope] ?? [])])]]),
  );
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
