import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { startProcess } from '../../workshop/apiserver/control-plane/child-process.ts';
import { kubeconfigText } from '../../workshop/apiserver/control-plane/control-plane.ts';
import { freePort } from '../../workshop/apiserver/control-plane/free-port.ts';
import { applyObjects } from '../../workshop/sandbox/manifests/apply.ts';
import { readObjects } from '../../workshop/sandbox/manifests/kustomization.ts';
import { runWithNode } from '../../workshop/sandbox/programs.ts';
import { until } from '../cluster-lab/cluster-lab.ts';
import { log } from '../e2e/cluster-under-test.ts';
import { keepLogFile } from '../fixtures/kept-logs.ts';
import type { CapiLab } from './capi-lab.ts';

const COMPONENTS = path.join(import.meta.dirname, '../../manifests/components');
const MAIN = path.join(import.meta.dirname, '../../cli/main.ts');
const NAMESPACE = 'shale-system';

/** The product's extension as a process, with the rights that its manifests give it in both clusters. */
export interface InstalledExtension extends AsyncDisposable {
  readonly url: string;
}

/** @returns it once it serves. @throws Error when it doesn't in time. */
export async function installExtension(lab: CapiLab, signal: AbortSignal): Promise<InstalledExtension> {
  const { management, sandbox, authority, dir } = lab;
  const options = { log, signal };
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } };
  await applyObjects(management.client, [namespace, ...(await componentObjects('cluster-api'))], options);
  await applyObjects(sandbox.client, await componentObjects('cluster-api-workload'), options);
  const tls = path.join(dir, 'extension-tls');
  await mkdir(tls);
  const { certPem, keyPem } = authority.issueServer({ dns: ['localhost'], ipv4: ['127.0.0.1'] });
  await writeFile(path.join(tls, 'tls.crt'), certPem);
  await writeFile(path.join(tls, 'tls.key'), keyPem, { mode: 0o600 });
  const { url, caPem } = management.controlPlane.access;
  const token = await management.controlPlane.createToken({
    namespace: NAMESPACE,
    name: 'shale-cluster-api',
  });
  const kubeconfig = path.join(dir, 'extension.kubeconfig');
  await writeFile(kubeconfig, kubeconfigText({ url, caPem, token }), { mode: 0o600 });
  const [port, health] = [await freePort(), await freePort()];
  const [command, ...args] = runWithNode(MAIN);
  const logFile = path.join(dir, 'extension.log');
  const running = await startProcess({
    name: 'shale capi-extension',
    command,
    args: [
      ...[...args, 'capi-extension', `--port=${port}`, `--metrics-port=${health}`],
      ...[`--tls-dir=${tls}`, `--kubeconfig=${kubeconfig}`],
    ],
    env: { PATH: process.env['PATH'] ?? '', HOME: dir },
    logFile,
    onExit: () => undefined,
  });
  keepLogFile('shale capi-extension', logFile);
  await until('the extension is ready', async () => {
    const response = await fetch(`http://127.0.0.1:${health}/readyz`).catch(String);
    return typeof response === 'string' ? response : response.ok;
  });
  return { url: `https://127.0.0.1:${port}`, [Symbol.asyncDispose]: () => running.stop() };
}

/** What of a component says who may do what; the Deployment and its Service are a cluster's that runs pods. */
async function componentObjects(component: string) {
  const files = ['rbac.yaml', 'admission.yaml'].map((name) => path.join(COMPONENTS, component, name));
  return (await Promise.all(files.map(readObjects))).flat();
}
