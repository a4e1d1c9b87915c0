import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { access, constants, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createAuthority } from '../../../x509/certificate.ts';
import { type RunningProcess, startProcess } from './child-process.ts';
import type { ControlPlane } from './control-plane.ts';
import { kubeconfigText } from './control-plane.ts';
import { freePort } from './free-port.ts';
import { requestToken, type Send, sendAs } from './request-token.ts';

/** A real API server and its etcd take a few seconds each on a small machine. */
const READY_MS = 60_000;
const POLL_MS = 100;

/**
 * Starts the real kube-apiserver on an etcd of its own, on loopback (as setup-envtest's users do), and
 * kube-controller-manager where it lies beside them. Where it doesn't, as setup-envtest leaves it, nothing collects
 * garbage and nobody keeps the status of disruption budgets.
 *
 * @param assets directory with `etcd` and `kube-apiserver` (KUBEBUILDER_ASSETS).
 * @throws Error when one of them is missing or does not become ready in time; its log is named.
 */
export async function startKubeApiServer(assets: string, signal: AbortSignal): Promise<ControlPlane> {
  const programs = { etcd: path.join(assets, 'etcd'), apiServer: path.join(assets, 'kube-apiserver') };
  for (const program of Object.values(programs)) await checkProgram(program, assets);
  const dir = await mkdtemp(path.join(tmpdir(), 'control-plane-'));
  const running: RunningProcess[] = [];
  const stop = async () => {
    for (const process of running.toReversed()) await process.stop();
    await rm(dir, { recursive: true, force: true });
  };
  try {
    const [client, peer, port] = [await freePort(), await freePort(), await freePort()];
    const etcdUrl = `http://127.0.0.1:${client}`;
    running.push(await startEtcd(programs.etcd, dir, client, peer));
    const server = await startServer(programs.apiServer, dir, etcdUrl, port);
    running.push(server.process);
    const { token, caPem } = server;
    const url = `https://127.0.0.1:${port}`;
    const send = sendAs({ url, token, caPem });
    await ready(url, send, dir, signal);
    const manager = path.join(assets, 'kube-controller-manager');
    const hasControllers = await isExecutable(manager);
    if (hasControllers) running.push(await startManager(manager, dir, kubeconfigText({ url, caPem, token })));
    return {
      description: `kube-apiserver of ${assets}`,
      hasControllers,
      access: { url, token, caPem },
      apiServer: { host: '127.0.0.1', port, caPem },
      etcdUrl,
      kubeconfig: () => kubeconfigText({ url, caPem, token }),
      createToken: (account) => requestToken(send, account),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function checkProgram(program: string, assets: string): Promise<void> {
  try {
    await access(program, constants.X_OK);
  } catch (error) {
    throw new Error(`KUBEBUILDER_ASSETS=${assets}: ${path.basename(program)} is not there or can't be run`, {
      cause: error,
    });
  }
}

function isExecutable(program: string): Promise<boolean> {
  return access(program, constants.X_OK).then(
    () => true,
    () => false,
  );
}

function startEtcd(command: string, dir: string, client: number, peer: number): Promise<RunningProcess> {
  return startProcess({
    name: 'etcd',
    command,
    args: [
      `--data-dir=${path.join(dir, 'etcd')}`,
      `--listen-client-urls=http://127.0.0.1:${client}`,
      `--advertise-client-urls=http://127.0.0.1:${client}`,
      `--listen-peer-urls=http://127.0.0.1:${peer}`,
      // What it holds ends with it.
      '--unsafe-no-fsync=true',
    ],
    env: {},
    logFile: path.join(dir, 'etcd.log'),
    onExit: () => undefined,
  });
}

async function startServer(command: string, dir: string, etcd: string, port: number) {
  const authority = createAuthority('kubernetes', new Date());
  const identity = authority.issueServer({
    dns: ['localhost', 'kubernetes.default.svc'],
    ipv4: ['127.0.0.1'],
  });
  const token = randomBytes(24).toString('base64url');
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const files = {
    cert: { name: 'tls.crt', text: identity.certPem },
    key: { name: 'tls.key', text: identity.keyPem },
    tokens: { name: 'tokens.csv', text: `${token},kubernetes-admin,kubernetes-admin,system:masters\n` },
    accountKey: { name: 'sa.key', text: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() },
    accountPublic: { name: 'sa.pub', text: publicKey.export({ type: 'spki', format: 'pem' }).toString() },
  };
  await mkdir(path.join(dir, 'cert'), { recursive: true });
  const at = (file: keyof typeof files) => path.join(dir, 'cert', files[file].name);
  for (const { name, text } of Object.values(files)) {
    await writeFile(path.join(dir, 'cert', name), text, { mode: 0o600 });
  }
  const process = await startProcess({
    name: 'kube-apiserver',
    command,
    args: [
      `--etcd-servers=${etcd}`,
      '--bind-address=127.0.0.1',
      `--secure-port=${port}`,
      `--cert-dir=${path.join(dir, 'cert')}`,
      `--tls-cert-file=${at('cert')}`,
      `--tls-private-key-file=${at('key')}`,
      `--token-auth-file=${at('tokens')}`,
      `--service-account-key-file=${at('accountPublic')}`,
      `--service-account-signing-key-file=${at('accountKey')}`,
      '--service-account-issuer=https://kubernetes.default.svc',
      '--service-cluster-ip-range=10.0.0.0/24',
      '--authorization-mode=RBAC',
      // They wait for controllers: for a default service account in each namespace, and for a new node's taint to go.
      '--disable-admission-plugins=ServiceAccount,TaintNodesByCondition',
      '--allow-privileged=true',
    ],
    env: {},
    logFile: path.join(dir, 'kube-apiserver.log'),
    onExit: () => undefined,
  });
  return { process, token, caPem: authority.caPem };
}

/** Pods are not made by it: nothing here has a kubelet, and no kubelet's lease is watched. */
const CONTROLLERS = [
  'clusterrole-aggregation-controller',
  'disruption-controller',
  'garbage-collector-controller',
  'namespace-controller',
  'serviceaccount-controller',
  'validatingadmissionpolicy-status-controller',
] as const;

async function startManager(command: string, dir: string, kubeconfig: string): Promise<RunningProcess> {
  const file = path.join(dir, 'cert', 'kube-controller-manager.kubeconfig');
  await writeFile(file, kubeconfig, { mode: 0o600 });
  return startProcess({
    name: 'kube-controller-manager',
    command,
    args: [
      `--kubeconfig=${file}`,
      `--controllers=${CONTROLLERS.join(',')}`,
      '--leader-elect=false',
      // Nobody asks it anything.
      '--secure-port=0',
    ],
    env: {},
    logFile: path.join(dir, 'kube-controller-manager.log'),
    onExit: () => undefined,
  });
}

async function ready(url: string, send: Send, dir: string, signal: AbortSignal): Promise<void> {
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(READY_MS)]);
  for (;;) {
    // Until it listens, a connection is refused.
    const response = await send('GET', '/readyz', undefined, deadline).catch(() => undefined);
    if (response?.status === 200) return;
    if (deadline.aborted) {
      throw new Error(
        `kube-apiserver at ${url} was not ready within ${READY_MS / 1000} s; its log was in ${dir}`,
      );
    }
    await delay(POLL_MS, undefined, { signal: deadline }).catch(() => undefined);
  }
}
