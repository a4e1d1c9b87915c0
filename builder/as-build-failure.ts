import { LayerError } from '../image/layer/write-layer.ts';
import { ContentError, RegistryError } from '../image/registry/registry-error.ts';
import { BuildFailure } from './build-failure.ts';

/** @returns the failure of a build: trouble that may pass is told apart from what an admin has to mend. */
export function asBuildFailure(error: unknown): BuildFailure {
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
  if (error instanceof ContentError)
    return new BuildFailure('UnexpectedContent', error.message, { cause: error });
  if (error instanceof LayerError) return new BuildFailure('NotLayerable', error.message, { cause: error });
  if (error instanceof TypeError)
    return new BuildFailure('InvalidReference', error.message, { cause: error });
  return BuildFailure.from(error);
}
