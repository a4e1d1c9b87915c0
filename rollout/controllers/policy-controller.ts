import { MachineConfigurations } from '../../api/machine-configuration.ts';
import { MACHINE_CONFIGURATION } from '../../api/names.ts';
import { type ApiClient, isAlreadyExists } from '../../cluster/api-client.ts';
import { done, type Result } from '../../cluster/controller.ts';
import { updateStatus } from '../../cluster/update-status.ts';
import type { Caches } from '../caches.ts';
import type { RolloutOptions } from '../options.ts';
import { policyStatus } from './policy-status.ts';

export interface PolicyControllerParts {
  readonly client: ApiClient;
  readonly caches: Pick<Caches, 'machineConfigurations'>;
  readonly options: RolloutOptions;
  /** ms since the epoch. */
  readonly now: () => number;
}

/**
 * Keeps the one MachineConfiguration: there is always one, and its status says which disruption policies are in force.
 *
 * @param name of the object; only `cluster` is looked at.
 * @throws ApiError
 */
export async function reconcilePolicy(
  { client, caches, options, now }: PolicyControllerParts,
  name: string,
  signal: AbortSignal,
): Promise<Result> {
  if (name !== MACHINE_CONFIGURATION) return done;
  const configuration = caches.machineConfigurations.get(name) ?? (await createEmpty(client, signal));
  if (configuration === undefined) return done;
  await updateStatus(
    client,
    MachineConfigurations,
    configuration,
    (current) => policyStatus(current, options, now()),
    { signal },
  );
  return done;
}

/** @returns undefined when somebody else made it first: its event brings the controller back. */
async function createEmpty(client: ApiClient, signal: AbortSignal) {
  try {
    return await client.create(
      MachineConfigurations,
      {
        apiVersion: 'operator.openshift.io/v1',
        kind: 'MachineConfiguration',
        metadata: { name: MACHINE_CONFIGURATION },
        spec: {},
      },
      { signal },
    );
  } catch (error) {
    if (isAlreadyExists(error)) return undefined;
    throw error;
  }
}
