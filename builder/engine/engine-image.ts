import { mkdtemp, rm } from 'node:fs/promises';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { imageLabels } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import { type Digest, type DigestedPullspec, hexOf } from '../../api/references.ts';
import { describeImage } from '../../image/append.ts';
import { ArchiveTooLarge } from '../../image/archive/archive-limits.ts';
import { unpackImageArchive } from '../../image/archive/unpack-archive.ts';
import { writeImageArchive } from '../../image/archive/write-archive.ts';
import type { LayerEntry } from '../../image/layer/entry.ts';
import { parseImageConfig } from '../../image/manifest.ts';
import { pushOnBase } from '../../image/push-image.ts';
import { byDigest, formatReference, parseReference } from '../../image/reference.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import { type EngineInputs, type EngineSpec, engineInputsDigest } from '../../predict/image/engine-spec.ts';
import { BuildFailure } from '../build-failure.ts';
import type { Slots } from '../slots.ts';
import {
  type BuildSecret,
  CONTAINERFILE,
  findSecret,
  secretFile,
  writeBuildContext,
} from './build-context.ts';
import { BuildLog } from './build-log.ts';
import { type ContainerEngine, type EngineAbout, EngineError, StepFailed } from './container-engine.ts';
import { effectiveContainerfile } from './containerfile.ts';
import type { Engines, EngineUser } from './engines.ts';
import { describeFailedStep } from './failed-step.ts';
import {
  type EngineImageKey,
  type EngineImageLookup,
  type EngineImageTrust,
  findEngineImage,
  signEngineImage,
} from './find-engine-image.ts';
import { stageImages, withImages } from './stage-images.ts';
import { WORK_PREFIX } from './work-dir.ts';

export interface EngineImageRequest extends EngineImageKey {
  /** Signs which inputs the image was built from. */
  readonly key?: EngineImageTrust['key'];
  /** @returns the rendered config's files; asked only for a Containerfile that reads them. */
  readonly tree: () => readonly LayerEntry[];
  /** @returns the values of the Secrets that the spec names; asked only when commands run. @throws BuildFailure */
  readonly secrets: () => Promise<readonly BuildSecret[]>;
}

export interface EngineParts {
  /** Used only when commands have to run. */
  readonly engines: Engines;
  /** The MachineOSBuild that the image is for; absent outside of a cluster. */
  readonly build?: EngineUser['build'];
  readonly client: RegistryClient;
  /** Where what the engine made lies for a while: it needs room for the base image. */
  readonly workDir: string;
  /** Places at the engine. */
  readonly slots: Slots;
  /** ms that the engine may take for one image. */
  readonly limitMs: number;
  /** Bytes that an engine's image may have, uncompressed and with its base. */
  readonly limitBytes: number;
  /** Engine images that this process built; a retry uses them again. */
  readonly built: Set<DigestedPullspec>;
  /** Engine images that successful builds of this cluster recorded. */
  readonly recorded: readonly DigestedPullspec[];
  /** Is given each line that the engine prints, masked. */
  readonly onLine: (line: string) => void;
}

/** An image that commands have made of the base: what the rendered config is then laid on. */
export interface EngineImage {
  readonly image: DigestedPullspec;
  /** The base image that it was made of, by digest. */
  readonly stockImage: DigestedPullspec;
  /** Whether the engine had to work for it. */
  readonly built: boolean;
  readonly logTail: readonly string[];
}

/**
 * The image that commands make of the base. An image of equal inputs that this cluster built before is used again; so a
 * rendered config that changes costs no engine's work. Nobody else's image is: anyone who may push could plant one.
 *
 * The engine is given nothing of registries: base and result go through this process, with its credentials, CAs and
 * mirrors.
 *
 * @throws BuildFailure, RegistryError, ContentError.
 */
export async function engineImage(
  parts: EngineParts,
  request: EngineImageRequest,
  signal: AbortSignal,
): Promise<EngineImage> {
  const trust = { known: [...parts.built, ...parts.recorded], key: request.key };
  const lookup = await findEngineImage(parts.client, request, trust, signal);
  const { stockImage, image, target } = lookup;
  if (image !== undefined) return { image, stockImage, built: false, logTail: [] };
  const secrets = request.engineSpec.buildSecrets.length === 0 ? [] : await request.secrets();
  const log = new BuildLog(secrets, parts.onLine);
  const work: Work = { ...parts, ...lookup, request, secrets, log };
  const digest = await parts.slots.run(signal, () => makeInTime(work, signal));
  const own = byDigest(target, digest);
  parts.built.add(own);
  if (request.key !== undefined)
    await signEngineImage(parts.client, lookup, { digest, key: request.key }, signal);
  return { image: own, stockImage, built: true, logTail: log.tail };
}

/** @throws BuildFailure with what the engine printed; the signal's reason. */
async function makeInTime(work: Work, signal: AbortSignal): Promise<Digest> {
  const { limitMs, log } = work;
  const deadline = AbortSignal.timeout(limitMs);
  try {
    return await make(work, AbortSignal.any([signal, deadline]));
  } catch (error) {
    signal.throwIfAborted();
    log.end();
    if (deadline.aborted) {
      const message = `the container engine took longer than ${limitMs / 60_000} minutes; make the Containerfile's steps shorter, or give the builder --engine-minutes`;
      throw new BuildFailure('EngineTimedOut', message, { cause: error, logTail: log.tail });
    }
    throw asBuildFailure(error, log);
  }
}

interface Work extends Omit<EngineParts, 'built'>, EngineImageLookup {
  readonly request: EngineImageRequest;
  readonly secrets: readonly BuildSecret[];
  readonly log: BuildLog;
}

function make(work: Work, signal: AbortSignal): Promise<Digest> {
  const { pool, architecture } = work.request;
  const user = { ...present({ build: work.build }), pool, architecture };
  return work.engines.use(user, (engine) => makeWith(engine, work, signal), signal);
}

async function makeWith(engine: ContainerEngine, work: Work, signal: AbortSignal): Promise<Digest> {
  const { client, base, request, inputs, log, secrets, workDir } = work;
  const about = await engine.about(signal);
  refuseWhatEngineCant(request.engineSpec, about);
  const name = await loadImage(engine, client, base, signal);
  const extensions = await loadExtensions(engine, client, inputs, signal);
  const stages = await loadStages(engine, client, request, signal);
  const engineSpec = { ...request.engineSpec, containerfile: stages };
  const containerfile = effectiveContainerfile(name, engineSpec, extensions);
  const tree = inputs.renderedConfig === '' ? [] : request.tree();
  const context = await writeBuildContext({ containerfile, tree, secrets });
  const tag = `shale.local/pool/${request.pool}:${request.architecture}`;
  const cacheFrom = (await engine.hasImage(tag, signal)) ? [tag] : [];
  await engine.build(
    {
      context,
      containerfile: CONTAINERFILE,
      tag,
      ...(about.architecture === request.architecture ? {} : { platform: `linux/${request.architecture}` }),
      buildArguments: request.engineSpec.buildArguments,
      secrets: secrets.map(({ id }, index) => ({ id, file: secretFile(index) })),
      cacheFrom,
    },
    (text) => log.write(text),
    signal,
  );
  log.end();
  const dir = await mkdtemp(path.join(workDir, WORK_PREFIX));
  try {
    const archive = await engine.save(tag, signal);
    const known = new Set(base.description.config.rootfs.diff_ids);
    const built = await unpackImageArchive(
      archive,
      { dir, known, limits: { bytes: work.limitBytes } },
      signal,
    );
    const own = ownLayers(built.layers, base.description.config.rootfs.diff_ids);
    for (const file of own) {
      const id = await findSecret(file, secrets);
      if (id !== undefined) throw secretInLayer(id);
    }
    const config = labelled(built.config, inputs);
    const image = { base: base.reference, description: base.description, config, layers: own };
    return await pushOnBase(client, image, work.target, signal);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

function refuseWhatEngineCant(engineSpec: EngineSpec, { kind, version, buildKit }: EngineAbout): void {
  const engine = `${kind} ${version}`;
  if (engineSpec.buildSecrets.length > 0 && kind !== 'Podman') {
    throw new BuildFailure(
      'SecretsNotSupported',
      `buildSecrets: ${engine} would have to be given them as build arguments or files, and they would stay in the image; use Podman as the engine, which mounts them while a command runs`,
    );
  }
  if (engineSpec.extensionsImage !== '' && kind !== 'Podman' && !buildKit) {
    throw new BuildFailure(
      'MountsNotSupported',
      `extensions and kernelType: ${engine} without BuildKit can't mount the extensions image ${engineSpec.extensionsImage}; use Podman, or Docker with BuildKit`,
    );
  }
}

/** @returns the name that the engine has the image by. */
async function loadImage(
  engine: ContainerEngine,
  client: RegistryClient,
  { reference, description }: Work['base'],
  signal: AbortSignal,
): Promise<string> {
  const { config, manifest } = description;
  const name = `shale.local/base:${hexOf(manifest.config.digest)}`;
  if (await engine.hasImage(name, signal)) return name;
  const layers = manifest.layers.map((blob, index) => {
    const diffId = config.rootfs.diff_ids[index];
    if (diffId === undefined) {
      throw new BuildFailure(
        'UnexpectedContent',
        `${formatReference(reference)} has more layers than diff_ids`,
      );
    }
    return { diffId, size: blob.size, open: () => client.readBlob(reference, blob, signal) };
  });
  const own = await buffer(client.readBlob(reference, manifest.config, signal));
  const archive = writeImageArchive({ name, config: withHistory(own), layers });
  await engine.load(archive, signal);
  return name;
}

/** Podman counts an image's layers in its history, which an image may lack (OCI image-spec, config.md: optional). */
function withHistory(bytes: Uint8Array): Uint8Array {
  const config = parseImageConfig(bytes, 'the base image');
  const layers = config.rootfs.diff_ids.length;
  const described = (config.history ?? []).filter(({ empty_layer = false }) => !empty_layer).length;
  if (described === layers) return bytes;
  const history = config.rootfs.diff_ids.map(() => ({ created_by: 'base image' }));
  return Buffer.from(JSON.stringify({ ...config, history }));
}

async function loadExtensions(
  engine: ContainerEngine,
  client: RegistryClient,
  { extensionsImage, architecture }: EngineInputs,
  signal: AbortSignal,
): Promise<string> {
  if (extensionsImage === '') return '';
  const reference = parseReference(extensionsImage);
  const description = await describeImage(client, reference, architecture, signal);
  return loadImage(engine, client, { reference, description }, signal);
}

/**
 * Loads the images that the Containerfile takes stages or files from. So they come with the credentials, CAs and
 * mirrors of the build, and no command can read any of these.
 *
 * @returns the Containerfile with the names that the engine has them by.
 */
async function loadStages(
  engine: ContainerEngine,
  client: RegistryClient,
  { engineSpec: { containerfile }, architecture }: EngineImageRequest,
  signal: AbortSignal,
): Promise<string> {
  const names = new Map<string, string>();
  for (const image of stageImages(containerfile)) {
    const reference = parseReference(image);
    const description = await describeImage(client, reference, architecture, signal);
    names.set(image, await loadImage(engine, client, { reference, description }, signal));
  }
  return withImages(containerfile, (image) => names.get(image) ?? image);
}

/** @returns files with what the commands added. */
function ownLayers(
  layers: readonly { readonly diffId: Digest; readonly file: string | undefined }[],
  base: readonly Digest[],
): string[] {
  const isOnBase = base.every((diffId, index) => layers[index]?.diffId === diffId);
  if (!isOnBase) {
    throw new BuildFailure(
      'NotOnBase',
      "the Containerfile's last stage is not based on the base image; it has to be FROM configs",
    );
  }
  return layers.slice(base.length).map(({ diffId, file }) => {
    // A command that adds nothing may create a layer that the base also has.
    if (file === undefined)
      throw new BuildFailure('UnexpectedContent', `layer ${diffId} repeats one of the base image`);
    return file;
  });
}

function labelled(bytes: Uint8Array, inputs: EngineInputs): Uint8Array {
  const config = parseImageConfig(bytes, "the engine's image");
  const Labels = { ...config.config?.Labels, [imageLabels.engineInputs]: engineInputsDigest(inputs) };
  return Buffer.from(JSON.stringify({ ...config, config: { ...config.config, Labels } }));
}

function secretInLayer(id: string): BuildFailure {
  return new BuildFailure(
    'SecretInLayer',
    `a command of the Containerfile wrote the secret ${id} into the image, which was not pushed; read it at /run/secrets/${id} and keep no copy`,
  );
}

const DISK_FULL = /no space left on device/i;
/** What the kernel says of a program of another architecture (execve(2), ENOEXEC). */
const FOREIGN = /exec format error/i;

function asBuildFailure(error: unknown, log: BuildLog): unknown {
  const logTail = log.tail;
  if (error instanceof ArchiveTooLarge) {
    const why = `${error.message}. Have the commands of the Containerfile leave less in the image, or give the builder --engine-gibibytes`;
    return new BuildFailure('ArchiveTooLarge', why, { cause: error, logTail });
  }
  if (!(error instanceof StepFailed || error instanceof EngineError)) return error;
  const message = log.mask(error.message).trim();
  if (error instanceof EngineError) {
    return new BuildFailure(error.reason, message, { cause: error, temporary: true, logTail });
  }
  const why = describeFailedStep(message, logTail);
  if (logTail.some((line) => DISK_FULL.test(line))) {
    const full = `the container engine's disk is full: ${why}`;
    return new BuildFailure('EngineDiskFull', full, { cause: error, temporary: true, logTail });
  }
  if (logTail.some((line) => FOREIGN.test(line))) {
    const foreign = `the container engine's host can't run programs of this architecture: ${why}. Use an engine on such a host (--engine), or let this one emulate it (qemu-user-static with binfmt_misc)`;
    return new BuildFailure('EngineArchitecture', foreign, { cause: error, logTail });
  }
  return new BuildFailure(
    'ContainerfileFailed',
    `${why}. Fix containerFile, packages or extensions; status.logTail has more lines`,
    { cause: error, logTail },
  );
}
