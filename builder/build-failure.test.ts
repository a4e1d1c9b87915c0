import { expect, test } from 'vitest';
import { ApiError } from '../cluster/api-client.ts';
import { LayerEntriesError } from '../image/layer/write-layer.ts';
import {
  ContentError,
  CredentialsUnreadable,
  DigestMismatch,
  RegistryError,
} from '../image/registry/registry-error.ts';
import { ContainerfileError, PackageNameError } from '../predict/image/engine-spec.ts';
import { asBuildFailure, BuildFailure } from './build-failure.ts';

test.each<[string, Error, string, boolean]>([
  ['401', new RegistryError('m', { code: 'UNAUTHORIZED', status: 401 }), 'RegistryRefusedCredentials', false],
  [
    'credentials',
    new CredentialsUnreadable('m', { code: 'UNAUTHORIZED', status: 401 }),
    'SecretUnusable',
    true,
  ],
  ['403', new RegistryError('m', { code: 'DENIED', status: 403 }), 'RegistryRefusedCredentials', false],
  ['404', new RegistryError('m', { code: '', status: 404 }), 'RegistryRefused', false],
  ['503', new RegistryError('m', { code: '', status: 503 }), 'RegistryUnavailable', true],
  ['content', new ContentError('m'), 'UnexpectedContent', false],
  ['wrong bytes', new DigestMismatch('m'), 'UnexpectedContent', true],
  ['API server', new ApiError(503, 'get Secret', {}), 'APIServerUnavailable', true],
  ['API server that refuses', new ApiError(403, 'get Secret', {}), 'BuildError', true],
  ['a layer', new LayerEntriesError('m', 'why'), 'NotLayerable', false],
  ['a package', new PackageNameError('m'), 'InvalidPackageName', false],
  ['a Containerfile', new ContainerfileError('m'), 'InvalidContainerfile', false],
  ['a reference', new TypeError('m'), 'InvalidReference', false],
  ['anything else', new Error('m'), 'BuildError', true],
])('the failure of %s', (_name, error, reason, temporary) => {
  expect(asBuildFailure(error)).toMatchObject({ reason, temporary, message: error.message, cause: error });
});

test('a failure stays itself', () => {
  const failure = new BuildFailure('NoEngine', 'm', { logTail: ['l'], retryAfterMs: 3 });
  expect(asBuildFailure(failure)).toBe(failure);
  expect(failure).toMatchObject({ name: 'BuildFailure', temporary: false, logTail: ['l'], retryAfterMs: 3 });
});

test('what is thrown and no Error is written down', () => {
  expect(BuildFailure.from('text')).toMatchObject({ message: 'text', reason: 'BuildError', temporary: true });
});
