import { type Secret, Secrets } from '../../api/kubernetes.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { secretValues } from '../../builder/build-secrets.ts';
import type { BuildSecret } from '../../builder/engine/build-context.ts';
import { CommandError } from '../command-line/exit-codes.ts';

/** What only a file has: the API server stores it as data, and never returns it. */
interface SecretInFile extends Secret {
  readonly stringData?: Readonly<Record<string, string>>;
}

/**
 * @param objects of files.
 * @param names of the Secrets that commands of a build may read.
 * @returns the values of these Secrets, as a cluster has them.
 * @throws {CommandError} when the files don't contain a Secret.
 */
export function secretsOf(
  objects: readonly KubernetesObject[],
  names: readonly string[],
): readonly BuildSecret[] {
  const secrets = objects.filter(({ kind }) => kind === Secrets.kind) as SecretInFile[];
  return names.flatMap((name) => {
    const secret = secrets.findLast(({ metadata }) => metadata.name === name);
    if (secret === undefined) throw new CommandError(`buildSecrets: Secret ${name} is not in these files`);
    return secretValues(asStored(secret));
  });
}

/** Of a key in both, the value in stringData is stored (Kubernetes, "Secrets"). */
function asStored({ stringData = {}, ...secret }: SecretInFile): Secret {
  const plain = Object.entries(stringData).map(([key, value]) => [
    key,
    Buffer.from(value).toString('base64'),
  ]);
  return { ...secret, data: { ...secret.data, ...Object.fromEntries(plain) } };
}
