import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { DigestedPullspec } from '../../../api/references.ts';
import { listDeployments } from '../../../daemon/os/ostree/deployments.ts';
import type { ImageSource } from '../../../daemon/os/ostree/image-source.ts';
import { createNode, nameNode } from '../../../workshop/sandbox/node/create.ts';
import { directoryNodeLayout } from '../../../workshop/sandbox/node/directory-host.ts';
import { deadline } from '../../fixtures/patience.ts';
import type { LabSystem } from '../lab-node.ts';
import { applyIgnition } from './apply-ignition.ts';
import { CREDENTIALS } from './stock-entries.ts';

const INSTALL_MS = 600_000;
/** Of cloud-init's data source NoCloud. */
const SEED = '/var/lib/cloud/seed/nocloud';

export interface MachineToInstall {
  readonly name: string;
  /** What it is installed from. */
  readonly image: DigestedPullspec;
  /** What it is set up by; absent: nothing but what its image has. */
  readonly ignition?: string;
  /** User data that its cloud-init reads. */
  readonly userData?: string;
}

interface Medium {
  readonly system: LabSystem;
  readonly source: ImageSource;
  /** Credentials for the registry. */
  readonly authFile: string;
}

/** Does what an installer and a provider do before a machine is switched on. @param dir of the machine; it exists. */
export async function installMachine(
  dir: string,
  { system, source, authFile }: Medium,
  { name, image, ignition, userData }: MachineToInstall,
): Promise<void> {
  const signal = deadline(INSTALL_MS);
  if (system.install === undefined) await createNode({ dir, name, image, source, signal });
  else {
    await system.install({ dir, image, archive: await system.archive(), authFile, signal });
    await nameNode(dir, name);
  }
  const { sysroot } = directoryNodeLayout(dir);
  const [first] = await listDeployments(sysroot);
  if (first === undefined) throw new Error(`${sysroot}: nothing is installed`);
  const writeState = async (place: string, content: string) => {
    const file = path.join(first.directory, '../..', place);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, content, { mode: 0o600 });
  };
  await writeState(CREDENTIALS, authFile);
  if (ignition !== undefined) await applyIgnition(first.directory, ignition);
  if (userData === undefined) return;
  // It looks for data sources before ostree's /var is mounted, unless it is told of one.
  const settings = path.join(first.directory, 'etc/cloud/cloud.cfg.d/90-lab.cfg');
  await writeFile(settings, 'datasource_list: [NoCloud]\nnetwork: {config: disabled}\n');
  await writeState(`${SEED}/user-data`, userData);
  await writeState(`${SEED}/meta-data`, `instance-id: ${name}\n`);
}
