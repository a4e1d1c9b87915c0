import { errorMessage } from '../api/error-message.ts';
import type { BuildFailureReason } from '../api/machine-os-build.ts';
import { isTemporary } from '../cluster/api-client.ts';
import { LayerEntriesError } from '../image/layer/write-layer.ts';
import {
  ContentError,
  CredentialsUnreadable,
  DigestMismatch,
  RegistryError,
} from '../image/registry/registry-error.ts';
import { ContainerfileError, PackageNameError } from '../predict/image/engine-spec.ts';

/** Why a build failed, with what its conditions and the decision to retry need. */
export class BuildFailure extends Error {
  /** CamelCase, for the condition's reason. */
  readonly reason: BuildFailureReason;
  /** Whether a retry may succeed: after an unavailable registry, but not after a wrong password. */
  readonly temporary: boolean;
  readonly retryAfterMs: number | undefined;
  /** The last lines of the container engine's output, if one was used. */
  readonly logTail: readonly string[] | undefined;

  constructor(
    reason: BuildFailureReason,
    message: string,
    options: ErrorOptions & {
      readonly temporary?: boolean;
      readonly retryAfterMs?: number;
      readonly logTail?: readonly string[];
    } = {},
  ) {
    super(message, options);
    this.name = 'BuildFailure';
    this.reason = reason;
    this.temporary = options.temporary ?? false;
    this.retryAfterMs = options.retryAfterMs;
    this.logTail = options.logTail;
  }

  /** @returns the error itself, or a temporary failure for an unexpected error. */
  static from(error: unknown): BuildFailure {
    if (error instanceof BuildFailure) return error;
    const message = errorMessage(error);
    const reason = isTemporary(error) ? 'APIServerUnavailable' : 'BuildError';
    return new BuildFailure(reason, message, { cause: error, temporary: true });
  }
}

/** @returns the failure of a build, which separates temporary errors from those that an admin has to fix. */
export function asBuildFailure(error: unknown): BuildFailure {
  if (error instanceof CredentialsUnreadable) {
    // The Secret may be corrected.
    return new BuildFailure('SecretUnusable', error.message, { cause: error, temporary: true });
  }
  if (error instanceof RegistryError) {
    const refused = error.status === 401 || error.status === 403;
    const reason = refused
      ? 'RegistryRefusedCredentials'
      : error.temporary
        ? 'RegistryUnavailable'
        : 'RegistryRefused';
    const retryAfter = error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs };
    return new BuildFailure(reason, error.message, {
      cause: error,
      temporary: error.temporary,
      ...retryAfter,
    });
  }
  if (error instanceof ContentError) {
    // A wrong byte is most often one of the answer, and not of the registry's disk.
    const temporary = error instanceof DigestMismatch;
    return new BuildFailure('UnexpectedContent', error.message, { cause: error, temporary });
  }
  if (error instanceof PackageNameError)
    return new BuildFailure('InvalidPackageName', error.message, { cause: error });
  if (error instanceof ContainerfileError)
    return new BuildFailure('InvalidContainerfile', error.message, { cause: error });
  if (error instanceof LayerEntriesError)
    return new BuildFailure('NotLayerable', error.message, { cause: error });
  if (error instanceof TypeError)
    return new BuildFailure('InvalidReference', error.message, { cause: error });
  return BuildFailure.from(error);
}
