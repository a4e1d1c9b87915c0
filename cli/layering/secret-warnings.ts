import { readRegistryAccess, SecretError } from '../../builder/secrets.ts';
import { type ApiClient, ApiError } from '../../cluster/api-client.ts';

/**
 * Looks at the Secrets that builds will need. They may come later, and from other hands: what is wrong is told, and keeps
 * nothing from being switched on.
 *
 * @returns a line for each Secret that can't be used, with how to mend it. @throws ApiError
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
    await readRegistryAccess({ client, namespace, plainHttp: new Set() }, [name], signal);
    return undefined;
  } catch (error) {
    if (error instanceof SecretError) {
      return `${error.message}; builds wait for it. To create it: kubectl -n ${namespace} create secret docker-registry ${name}`;
    }
    // Who may not read Secrets may switch layering on all the same.
    if (error instanceof ApiError && error.status === 403) return undefined;
    throw error;
  }
}
