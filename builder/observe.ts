import type { Logger } from 'pino';
import { MachineConfigs } from '../api/machine-config.ts';
import { MachineConfigNodes } from '../api/machine-config-node.ts';
import { MachineConfigPools } from '../api/machine-config-pool.ts';
import { MachineConfigurations } from '../api/machine-configuration.ts';
import { MachineOSBuilds } from '../api/machine-os-build.ts';
import { MachineOSConfigs } from '../api/machine-os-config.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { createInformer } from '../cluster/informer.ts';

/** What the builder watches, one watch per kind. */
export function createBuildCaches(client: ApiClient, log: Logger) {
  return {
    machineOSConfigs: createInformer(client, MachineOSConfigs, { log }),
    builds: createInformer(client, MachineOSBuilds, { log }),
    pools: createInformer(client, MachineConfigPools, { log }),
    machineConfigs: createInformer(client, MachineConfigs, { log }),
    machineConfigurations: createInformer(client, MachineConfigurations, { log }),
    nodes: createInformer(client, MachineConfigNodes, { log }),
  } as const;
}

export type BuildCaches = ReturnType<typeof createBuildCaches>;
