import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type RunningProcess, startProcess } from '../../workshop/apiserver/control-plane/child-process.ts';
import { kubeconfigText } from '../../workshop/apiserver/control-plane/control-plane.ts';
import { sendAs } from '../../workshop/apiserver/control-plane/request-token.ts';
import { createAuthority } from '../../x509/certificate.ts';
import { keepLogFile } from '../fixtures/kept-logs.ts';
import { deadline } from '../fixtures/patience.ts';
import type { GIVEN, GivenPrograms } from './given-programs.ts';
import { CONTROL_PLANE_ADDRESS, SERVICE_PORT, SERVICE_RANGE } from './lab-network.ts';
import { ENFORCER_USER } from './policy-enforcer.ts';

const READY_MS = 120_000;
const POLL_MS = 200;
const ETCD = 'http://127.0.0.1:2379';
/** Where machines reach the API server. */
const ON_MACHINES = `https://${CONTROL_PLANE_ADDRESS}:${SERVICE_PORT}`;

/** kube-apiserver with etcd, controllers and scheduler, as an installer starts them. */
export interface LabControlPlane {
  /** Of a user who may do everything. */
  readonly access: { readonly url: string; readonly token: string; readonly caPem: string };
  /** @returns a kubeconfig for the kubelet of a node. */
  kubeletConfig(node: string): string;
  /** @returns a kubeconfig for what enforces NetworkPolicies on a machine. */
  enforcerConfig(): string;
  readonly auditLog: string;
  /** Ends the API server without notice, or starts it again. */
  readonly apiServer: { kill(): Promise<void>; start(): Promise<void> };
  stop(): Promise<void>;
}

/** The API server may read logs from kubelets by this name. */
export const KUBELET_CLIENT = 'kube-apiserver-kubelet-client';

/** Who asked for what, and what became of it; not what was sent. */
const AUDIT_POLICY =
  'apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n';

/** @param dir empty. @param nodes whose kubelets will come. @throws Error when it isn't ready in time. */
export async function startLabControlPlane(
  programs: GivenPrograms,
  dir: string,
  nodes: readonly string[],
): Promise<LabControlPlane> {
  const authority = createAuthority('kubernetes-ca', new Date());
  const { caPem } = authority;
  const users = userTokens(nodes);
  const url = `https://127.0.0.1:${SERVICE_PORT}`;
  const configOf = (user: string, server = url) =>
    kubeconfigText({ url: server, caPem, token: users.tokenOf(user) });
  const files = await writeFiles(dir, authority, users.file, {
    manager: configOf('system:kube-controller-manager'),
    scheduler: configOf('system:kube-scheduler'),
  });
  const start = async (name: (typeof GIVEN)[number], args: readonly string[]) => {
    const logFile = path.join(dir, `${name}.log`);
    keepLogFile(name, logFile);
    return startProcess({ name, command: programs[name], args, env: {}, logFile, onExit: () => undefined });
  };
  const running: RunningProcess[] = [];
  const stop = async () => {
    for (const process of running.toReversed()) await process.stop();
  };
  try {
    running.push(await start('etcd', ['--data-dir', path.join(dir, 'etcd'), '--unsafe-no-fsync=true']));
    const startServer = () => start('kube-apiserver', apiServerArguments(files));
    let server = await startServer();
    running.push({ ...server, stop: () => server.stop() });
    const access = { url, token: users.tokenOf('admin'), caPem };
    await ready(access);
    running.push(
      await start('kube-controller-manager', managerArguments(files)),
      await start('kube-scheduler', [
        ...['--kubeconfig', files.scheduler, '--authentication-kubeconfig', files.scheduler],
        ...[
          '--authorization-kubeconfig',
          files.scheduler,
          '--leader-elect=false',
          '--bind-address=127.0.0.1',
        ],
      ]),
    );
    return {
      access,
      kubeletConfig: (node) => configOf(`system:node:${node}`, ON_MACHINES),
      enforcerConfig: () => configOf(ENFORCER_USER, ON_MACHINES),
      auditLog: files.auditLog,
      apiServer: {
        kill: () => server.kill(),
        start: async () => {
          server = await startServer();
          await ready(access);
        },
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Tokens in place of certificates with groups in them: the same users and rights. */
function userTokens(nodes: readonly string[]) {
  const users: readonly (readonly [string, string])[] = [
    ['admin', 'system:masters'],
    ['system:kube-controller-manager', ''],
    ['system:kube-scheduler', ''],
    [ENFORCER_USER, ''],
    ...nodes.map((node) => [`system:node:${node}`, 'system:nodes'] as const),
  ];
  const tokens = new Map(users.map(([name]) => [name, randomBytes(24).toString('base64url')]));
  const tokenOf = (user: string): string => {
    const token = tokens.get(user);
    if (token === undefined) throw new TypeError(`${user} is no user of the cluster`);
    return token;
  };
  const file = users.map(([name, group]) => `${tokenOf(name)},${name},${name},"${group}"\n`).join('');
  return { tokenOf, file };
}

async function writeFiles(
  dir: string,
  authority: ReturnType<typeof createAuthority>,
  tokens: string,
  kubeconfigs: { readonly manager: string; readonly scheduler: string },
) {
  const server = authority.issueServer({
    dns: ['kubernetes', 'kubernetes.default.svc'],
    ipv4: ['127.0.0.1', CONTROL_PLANE_ADDRESS, '10.96.0.1'],
  });
  const client = authority.issueClient(KUBELET_CLIENT);
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const texts = {
    ca: authority.caPem,
    tlsCert: server.certPem,
    tlsKey: server.keyPem,
    kubeletCert: client.certPem,
    kubeletKey: client.keyPem,
    tokens,
    accountKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    accountPublic: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    auditPolicy: AUDIT_POLICY,
    ...kubeconfigs,
  };
  const pki = path.join(dir, 'pki');
  await mkdir(pki, { recursive: true });
  const at = (name: string) => path.join(pki, name);
  for (const [name, text] of Object.entries(texts)) await writeFile(at(name), text, { mode: 0o600 });
  const places = Object.fromEntries(Object.keys(texts).map((name) => [name, at(name)]));
  return { ...(places as Record<keyof typeof texts, string>), auditLog: path.join(dir, 'audit.log'), pki };
}

type Files = Awaited<ReturnType<typeof writeFiles>>;

function apiServerArguments(files: Files): string[] {
  return [
    ...[`--etcd-servers=${ETCD}`, `--advertise-address=${CONTROL_PLANE_ADDRESS}`],
    ...[
      '--bind-address=0.0.0.0',
      `--secure-port=${SERVICE_PORT}`,
      `--service-cluster-ip-range=${SERVICE_RANGE}`,
    ],
    ...[
      `--cert-dir=${files.pki}`,
      `--tls-cert-file=${files.tlsCert}`,
      `--tls-private-key-file=${files.tlsKey}`,
    ],
    ...[`--token-auth-file=${files.tokens}`, '--authorization-mode=Node,RBAC'],
    ...['--enable-admission-plugins=NodeRestriction', '--allow-privileged=true'],
    ...[`--kubelet-client-certificate=${files.kubeletCert}`, `--kubelet-client-key=${files.kubeletKey}`],
    '--kubelet-preferred-address-types=InternalIP',
    ...[`--service-account-key-file=${files.accountPublic}`],
    `--service-account-signing-key-file=${files.accountKey}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    ...[`--audit-policy-file=${files.auditPolicy}`, `--audit-log-path=${files.auditLog}`],
  ];
}

function managerArguments(files: Files): string[] {
  return [
    ...['--kubeconfig', files.manager, '--authentication-kubeconfig', files.manager],
    ...['--authorization-kubeconfig', files.manager, '--leader-elect=false', '--bind-address=127.0.0.1'],
    ...['--use-service-account-credentials=true', '--service-account-private-key-file', files.accountKey],
    ...['--root-ca-file', files.ca, `--cert-dir=${files.pki}`],
  ];
}

async function ready(access: LabControlPlane['access']): Promise<void> {
  const end = deadline(READY_MS);
  const send = sendAs(access);
  for (;;) {
    // Until it listens, a connection is refused.
    const answered = await send('GET', '/readyz', undefined, end).catch((error: unknown) => ({
      status: 0,
      body: error,
    }));
    if (answered.status === 200) return;
    if (end.aborted) throw new Error(`kube-apiserver at ${access.url} is not ready: ${answered.body}`);
    await delay(POLL_MS, undefined, { signal: end }).catch(() => undefined);
  }
}
