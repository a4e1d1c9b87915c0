import { readFile } from 'node:fs/promises';
import { type Command, Option } from 'commander';
import { errorMessage } from '../../api/error-message.ts';
import { BuildFailure } from '../../builder/build-failure.ts';
import { LayerError } from '../../image/layer/read-layer.ts';
import { goArchitecture } from '../../image/manifest.ts';
import type { Reference } from '../../image/reference.ts';
import type { RegistryAccess } from '../../image/registry/connection.ts';
import { parseAuthFile } from '../../image/registry/credentials.ts';
import { createMirroredClient } from '../../image/registry/mirrored-client.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import { ContentError, RegistryError } from '../../image/registry/registry-error.ts';
import { noRegistries, parseRegistriesConf, type Registries } from '../../oci/registries-conf.ts';
import { ContainerfileError, PackageNameError } from '../../predict/image/engine-spec.ts';
import { asGiven, CommandError, exitCodes, UsageError } from './exit-codes.ts';
import { trustSystemCertificates } from './system-trust.ts';

/** ms; a command must not hang when a registry doesn't respond. */
export const REGISTRY_DEADLINE_MS = 300_000;

/** Flags for access to registries. */
export interface RegistryFlags {
  readonly plainHttp: string[];
  readonly authfile?: string;
  readonly caFile?: string;
  readonly registriesConf?: string;
}

/** @returns the command with these flags. */
export function withRegistryFlags(command: Command): Command {
  return command
    .option('--plain-http <host...>', 'registries (host:port) to contact over plain HTTP', [])
    .option('--authfile <file>', 'registry credentials, in the format of docker and podman')
    .option('--ca-file <file>', 'CA certificates (PEM) to trust for registries')
    .option('--registries-conf <file>', 'registries.conf with the mirrors to pull from');
}

/** @returns the command with `--architecture`, which selects an image of an index. */
export function withArchitecture(command: Command): Command {
  return command.addOption(
    new Option('--architecture <name>', 'architecture of the image to use from an index').default(
      goArchitecture(process.arch),
      "this machine's",
    ),
  );
}

/**
 * @param own the repository that the command pushes to, if any; mirrors don't apply to it.
 * @param known access to registries that no flag overrides.
 * @param mirrors where to pull from, unless a flag names a registries.conf.
 * @returns a client that accesses registries as the flags specify.
 * @throws CommandError
 */
export async function registryClient(
  { plainHttp, authfile, caFile, registriesConf }: RegistryFlags,
  own?: Reference,
  known: RegistryAccess = {},
  mirrors: Registries = noRegistries,
): Promise<RegistryClient> {
  const ca = caFile === undefined ? undefined : await readText(caFile);
  const access = {
    ...known,
    plainHttp: new Set([...(known.plainHttp ?? []), ...plainHttp]),
    ...(authfile === undefined ? {} : { auths: await readAs(authfile, parseAuthFile) }),
    // Asked for connections with TLS only.
    caFor: (registry: string) => {
      if (ca !== undefined) return ca;
      trustSystemCertificates();
      return known.caFor?.(registry);
    },
  };
  const conf =
    registriesConf === undefined
      ? mirrors
      : await readAs(registriesConf, (text) => parseRegistriesConf([{ name: registriesConf, text }]));
  return createMirroredClient(access, { conf, own });
}

/** @throws CommandError when the file can't be read as that; its message names the file once. */
async function readAs<T>(file: string, parse: (text: string) => T): Promise<T> {
  const text = await readText(file);
  return asGiven(
    () => parse(text),
    (error) => `${file}: ${errorMessage(error).replace(`${file}: `, '')}`,
  );
}

/** @throws CommandError when the file can't be read. */
export async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    throw new UsageError(`${file}: can't be read`, { cause });
  }
}

/** @throws {CommandError} for an error of a registry or an image, which is printed without a stack. */
export function rethrow(error: unknown): never {
  if (
    error instanceof RegistryError ||
    error instanceof ContentError ||
    error instanceof LayerError ||
    error instanceof PackageNameError ||
    error instanceof ContainerfileError ||
    error instanceof BuildFailure
  ) {
    throw new CommandError(error.message, exitCodes.failed, { cause: error });
  }
  throw error;
}

/** As {@link rethrow}, for a command whose exit code 1 means that there are differences. @throws {CommandError} */
export function rethrowUnavailable(error: unknown): never {
  try {
    return rethrow(error);
  } catch (thrown) {
    if (!(thrown instanceof CommandError) || thrown === error) throw thrown;
    throw new CommandError(thrown.message, exitCodes.unavailable, { cause: error });
  }
}
