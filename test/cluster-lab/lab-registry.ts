import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { parseAuthFile } from '../../image/registry/credentials.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { DIE_WITH_PARENT } from '../../workshop/apiserver/control-plane/child-process.ts';
import { startDockerRegistry } from '../../workshop/sandbox/docker-registry.ts';
import type { SandboxRegistry } from '../../workshop/sandbox/registry.ts';
import { createAuthority } from '../../x509/certificate.ts';
import { HTPASSWD, PASSWORD, USER } from '../node-lab/private-registry.ts';
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
  await mkdir(dir, { recursive: true });
  const authority = createAuthority('shale-lab-registry', new Date());
  const { certPem, keyPem } = authority.issueServer({ dns: [], ipv4: [CONTROL_PLANE_ADDRESS] });
  const file = (name: string) => path.join(dir, name);
  await writeFile(file('tls.crt'), certPem);
  await writeFile(file('tls.key'), keyPem, { mode: 0o600 });
  await writeFile(file('htpasswd'), HTPASSWD);
  const { host, stop } = await startDockerRegistry({
    dir,
    address: CONTROL_PLANE_ADDRESS,
    tls: { certificate: file('tls.crt'), key: file('tls.key') },
    htpasswd: file('htpasswd'),
    launcher: DIE_WITH_PARENT,
  });
  const { caPem } = authority;
  const certificates = file('certs.d');
  await mkdir(certificates);
  await writeFile(path.join(certificates, 'ca.crt'), caPem);
  const auth = Buffer.from(`${USER}:${PASSWORD}`).toString('base64');
  const auths = parseAuthFile(JSON.stringify({ auths: { [host]: { auth } } }));
  const client = createRegistryClient({ caFor: () => caPem, auths });
  return { host, caPem, client, user: { name: USER, password: PASSWORD }, certificates, stop };
}
