import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { SandboxRegistry } from '../../workshop/sandbox/registry.ts';
import { PASSWORD, startLockedRegistry, USER } from '../node-lab/private-registry.ts';
import { CONTROL_PLANE_ADDRESS } from './lab-network.ts';

/** A registry on the machines' network with a CA of its own, which lets nobody in without a password. */
export interface LabRegistry extends SandboxRegistry {
  /** A pull secret for it, as `kubectl create secret docker-registry` takes it. */
  readonly user: { readonly name: string; readonly password: string };
  /** A directory with its CA alone (containers-certs.d(5)). */
  readonly certificates: string;
}

/** @param dir where it keeps what it has. */
export async function startLabRegistry(dir: string): Promise<LabRegistry> {
  const registry = await startLockedRegistry(dir, CONTROL_PLANE_ADDRESS);
  const certificates = path.join(dir, 'certs.d');
  await mkdir(certificates);
  await writeFile(path.join(certificates, 'ca.crt'), registry.caPem);
  return { ...registry, user: { name: USER, password: PASSWORD }, certificates };
}
