import { Agent } from 'node:https';
import { isIP } from 'node:net';
import { addAbortSignal, Readable } from 'node:stream';
import Docker from 'dockerode';
import { errorMessage } from '../../api/error-message.ts';
import { present } from '../../api/present.ts';
import { CONTAINERFILE } from './build-context.ts';
import {
  type ContainerEngine,
  type EngineAbout,
  type EngineBuild,
  EngineError,
  StepFailed,
} from './container-engine.ts';
import { type EngineAccess, formatEngineAccess } from './engine-access.ts';

/** A message of a build's, a load's or a save's stream (Docker Engine API, "ImageBuild"). */
interface ProgressMessage {
  readonly stream?: string;
  readonly status?: string;
  readonly error?: string;
  readonly errorDetail?: { readonly message?: string; readonly code?: number };
}

/** As that of the Docker API; Podman's own API writes OCI manifests unless asked. */
const DOCKER_FORMAT = 'application/vnd.docker.distribution.manifest.v2+json';
const ANSWER_MS = 30_000;

/**
 * Podman's own API can say how commands are isolated; of its Docker API the parameter is ignored, and so is
 * BUILDAH_ISOLATION (podman/pkg/api/handlers/compat/images_build.go).
 */
const LIBPOD = 'v4.0.0/libpod';

export interface DockerEngineOptions {
  /** Podman only: run commands in a chroot, which needs no privileges, instead of a container. */
  readonly chroot?: boolean;
}

/** Reaches an engine by the Docker Engine API: Docker's, or Podman's of `podman system service`. */
export function dockerEngine(
  access: EngineAccess,
  { chroot = false }: DockerEngineOptions = {},
): ContainerEngine {
  const docker = new Docker(connectionOf(access));
  const builder = chroot ? new Docker({ ...connectionOf(access), version: LIBPOD }) : docker;
  const url = formatEngineAccess(access);
  const failed = (error: unknown): never => {
    throw asEngineError(error, url);
  };
  const bounded = (signal: AbortSignal) => AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]);
  let known: Promise<EngineAbout> | undefined;
  const about = (signal: AbortSignal): Promise<EngineAbout> => {
    known ??= ask(docker, bounded(signal)).catch((error: unknown) => {
      known = undefined;
      return failed(error);
    });
    return known;
  };
  return {
    about,
    hasImage: (name, signal) =>
      unlessAborted(docker.getImage(name).inspect(), bounded(signal)).then(
        () => true,
        (error: unknown) => (statusOf(error) === 404 ? false : failed(error)),
      ),
    async load(archive, signal) {
      const source = Readable.from(archive);
      const stop = () => source.destroy(signal.reason as Error);
      signal.addEventListener('abort', stop, { once: true });
      try {
        await follow(await docker.loadImage(source, { abortSignal: signal }), () => undefined, signal);
      } catch (error) {
        // What kept the archive from coming counts more than that the engine missed its end.
        throw source.errored ?? asEngineError(error, url);
      } finally {
        signal.removeEventListener('abort', stop);
        source.destroy();
      }
    },
    async build(build, onOutput, signal) {
      const engine = await about(signal);
      try {
        const stream = await builder.buildImage(Readable.from([build.context]), {
          ...optionsOf(build, engine),
          ...(chroot ? { isolation: 'chroot', outputformat: DOCKER_FORMAT } : {}),
          abortSignal: signal,
        });
        await follow(stream, (message) => onOutput(outputOf(message, engine)), signal);
      } catch (error) {
        throw error instanceof StepFailed ? error : asEngineError(error, url);
      }
    },
    async save(name, signal) {
      const archive = await unlessAborted(docker.getImage(name).get(), bounded(signal)).catch(failed);
      return addAbortSignal(signal, archive as Readable);
    },
    remove: (name, signal) =>
      unlessAborted(docker.getImage(name).remove({ force: true }), bounded(signal)).then(
        () => undefined,
        (error: unknown) => (statusOf(error) === 404 ? undefined : failed(error)),
      ),
  };
}

function connectionOf(access: EngineAccess): Docker.DockerOptions {
  if (access.kind === 'socket') return { socketPath: access.path };
  const { host, port, serverName, ca, cert, key } = access;
  // An address is no server name (RFC 6066, section 3); Node verifies it as the host.
  const servername = isIP(serverName) === 0 ? serverName : '';
  const agent = new Agent({ ca, cert, key, servername });
  // Docker's own variables are not for this engine: DOCKER_CERT_PATH would replace what is not given here.
  // Missing in the types of dockerode; docker-modem passes it on.
  const options: Docker.DockerOptions & { readonly agent: Agent } = {
    protocol: 'https',
    host,
    port,
    ca,
    cert,
    key,
    agent,
  };
  return options;
}

async function ask(docker: Docker, signal: AbortSignal): Promise<EngineAbout> {
  const version = (await unlessAborted(docker.version(), signal)) as Docker.DockerVersion & {
    readonly Components?: readonly { readonly Name: string }[];
  };
  const isPodman = (version.Components ?? []).some(({ Name }) => /podman/i.test(Name));
  // "Default version of docker image builder" (Docker Engine API, Ping): 2 is BuildKit. Podman's compatible API has
  // none.
  const builder = isPodman ? '' : await unlessAborted(builderVersion(docker), signal);
  return {
    kind: isPodman ? 'Podman' : 'Docker',
    version: version.Version,
    buildKit: builder === '2',
    architecture: version.Arch,
  };
}

/** @returns what a call without a signal of its own returns, unless the signal is aborted before. */
function unlessAborted<T>(call: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const stop = () => reject(signal.reason as Error);
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop, { once: true });
  return Promise.race([call, promise]).finally(() => signal.removeEventListener('abort', stop));
}

/** dockerode's ping drops the header that says it; the modem below gives the whole answer. */
function builderVersion(docker: Docker): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = {
      path: '/_ping',
      method: 'GET',
      isStream: true,
      statusCodes: { 200: true, 500: 'server error' },
    };
    docker.modem.dial(request, (error: unknown, answer: unknown) => {
      if (error !== null && error !== undefined) return reject(error as Error);
      const response = answer as { headers: Record<string, string | undefined>; resume(): void };
      response.resume();
      resolve(response.headers['builder-version'] ?? '');
    });
  });
}

function optionsOf(build: EngineBuild, { kind, buildKit }: EngineAbout): Record<string, unknown> {
  const { tag, platform, buildArguments, secrets, cacheFrom } = build;
  return {
    t: tag,
    dockerfile: CONTAINERFILE,
    rm: true,
    forcerm: true,
    ...(Object.keys(buildArguments).length === 0 ? {} : { buildargs: buildArguments }),
    ...present({ platform }),
    ...(cacheFrom.length === 0 ? {} : { cachefrom: cacheFrom }),
    ...(buildKit ? { version: '2' } : {}),
    // Podman's own parameter: the files come with the context, and the ignore file keeps them out of every COPY.
    ...(kind === 'Podman' && secrets.length > 0
      ? { secrets: JSON.stringify(secrets.map(({ id, file }) => `id=${id},src=${file}`)) }
      : {}),
  };
}

/** Reads a stream of messages to its end. @throws {StepFailed | Error} when a message reports an error. */
function follow(
  stream: NodeJS.ReadableStream,
  onMessage: (message: ProgressMessage) => void,
  signal: AbortSignal,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const stop = () => {
    (stream as Readable).destroy(signal.reason as Error);
    reject(signal.reason as Error);
  };
  signal.addEventListener('abort', stop, { once: true });
  let failure: string | undefined;
  followProgress(
    stream,
    (error) => {
      if (failure !== undefined) reject(toError(failure));
      else if (error !== null && error !== undefined) reject(toError(error.message));
      else resolve();
    },
    (message) => {
      failure ??= message.error;
      onMessage(message);
    },
  );
  return promise.finally(() => signal.removeEventListener('abort', stop));
}

/** dockerode's also decodes BuildKit's messages; its types lack it. */
function followProgress(
  stream: NodeJS.ReadableStream,
  onFinished: (error: Error | null | undefined) => void,
  onProgress: (message: ProgressMessage) => void,
): void {
  const { followProgress: decode } = Docker.prototype as unknown as { followProgress: typeof followProgress };
  decode(stream, onFinished, onProgress);
}

/**
 * dockerode 5 hands the bytes that a command printed under BuildKit on in base64; every other line has a blank in it.
 */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\n$/;

function outputOf({ stream, error }: ProgressMessage, { buildKit }: EngineAbout): string {
  const text = stream ?? (error === undefined ? '' : `${error}\n`);
  return buildKit && BASE64.test(text) ? Buffer.from(text, 'base64').toString('utf8') : text;
}

/** As Docker, BuildKit and buildah word that a command of the file failed, or that the file can't be read. */
const STEP_FAILED =
  /returned a non-zero code|executor failed running|did not complete successfully|building at STEP|while running runtime|exit status|dockerfile parse error|unknown instruction|failed to solve|invalid reference format|COPY failed|no such file or directory|syntax error/i;
const DISK_FULL = /no space left on device/i;

function toError(message: string): Error {
  if (DISK_FULL.test(message)) return new EngineError('EngineDiskFull', message);
  return STEP_FAILED.test(message) ? new StepFailed(message) : new Error(message);
}

function asEngineError(error: unknown, url: string): Error {
  if (error instanceof EngineError || error instanceof StepFailed) return error;
  const { code, message = String(error) } = error as { readonly code?: unknown; readonly message?: string };
  if (error instanceof Error && error.name === 'AbortError') return error;
  if (DISK_FULL.test(message)) return new EngineError('EngineDiskFull', message, { cause: error });
  // A file that can't be read is refused before anything is printed.
  if (statusOf(error) === 400 && STEP_FAILED.test(message)) return new StepFailed(message, { cause: error });
  const isConnection = typeof code === 'string' && statusOf(error) === undefined;
  return isConnection
    ? new EngineError('EngineUnavailable', `container engine ${url}: ${errorMessage(error)}`, {
        cause: error,
      })
    : new EngineError('EngineFailed', `container engine ${url}: ${message}`, { cause: error });
}

function statusOf(error: unknown): number | undefined {
  return (error as { readonly statusCode?: number } | undefined)?.statusCode;
}
