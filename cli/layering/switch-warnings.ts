import { readRegistryAccess, SecretError } from '../../builder/secrets.ts';
import { type ApiClient, ApiError, isTemporary } from '../../cluster/api-client.ts';

/**
 * Checks the Secrets that builds need. Another admin may create them later, so a problem is a warning and doesn't
 * prevent layering from being enabled.
 *
 * @returns a line for each Secret that can't be used, with its fix. @throws {ApiError}
 */
export async function secretWarnings(
  client: ApiClient,
  namespace: string,
  secrets: readonly (string | undefined)[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const named = [...new Set(secrets.filter((name) => name !== undefined && name !== ''))] as string[];
  const lines = await Promise.all(named.map((name) => warningOf(client, namespace, name, signal)));
  return lines.filter((line) => line !== undefined);
}

async function warningOf(
  client: ApiClient,
  namespace: string,
  name: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    await readRegistryAccess({ client, namespace, plainHttp: new Set() }, { names: [name] }, signal);
    return undefined;
  } catch (error) {
    if (error instanceof SecretError) {
      return `${error.message}; builds wait for it. To create it: kubectl -n ${namespace} create secret docker-registry ${name}`;
    }
    // Enabling layering doesn't require permission to read Secrets.
    if (error instanceof ApiError && error.status === 403) return undefined;
    // The switch is written already.
    if (isTemporary(error))
      return `Secret ${namespace}/${name} can't be checked: ${(error as Error).message}`;
    throw error;
  }
}
