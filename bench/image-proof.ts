import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import pino from 'pino';
import { type AppendInput, appendBuild } from '../builder/steps/append-build.ts';
import { defaultPolicySettings, effectivePolicies, policyDigest } from '../disruption/effective-policies.ts';
import { createRegistryClient } from '../image/registry/registry-client.ts';
import { imageProver } from '../operator/proof/prove-image.ts';
import type { PoolRecord } from '../rollout/pools/pool-record.ts';
import { answeringClient } from '../test/fixtures/answering-client.ts';
import { startDockerRegistry } from '../workshop/sandbox/docker-registry.ts';
import { configFiles, renderedConfig } from './images/content.ts';
import { pushFilledBase } from './images/filled-base.ts';

/**
 * `node bench/image-proof.ts [MB]`: what it costs the operator to compute an image again, on one real registry. Nodes
 * compute nothing.
 *
 * first: the base's layers are read. later: the operator knows the base. new process: it reads the record that the
 * builder pushed. `longest block`: of the event loop, on which the leader does everything else.
 */

const megabytes = Number(process.argv[2] ?? 300);
const signal = AbortSignal.timeout(3_000_000);
const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
const policies = effectivePolicies(undefined, defaultPolicySettings);
const inForce = { policies, policyDigest: policyDigest(policies) };
const dir = await mkdtemp(path.join(tmpdir(), 'shale-bench-'));
const registry = await startDockerRegistry({ dir });
const plainHttp = new Set([registry.host]);
const client = createRegistryClient({ plainHttp });
const options = {
  client: answeringClient({ find: async () => undefined }),
  namespace: 'shale-system',
  plainHttp,
  log: pino({ level: 'silent' }),
};
const rows: object[] = [];
try {
  const name = `${registry.host}/os/base`;
  await pushFilledBase(client, `${name}:1`, { bytes: megabytes * 1e6, files: megabytes * 100 }, signal);
  const { digest } = await client.getManifest(
    { registry: registry.host, repository: 'os/base', tag: '1' },
    signal,
  );
  const baseImage = `${name}@${digest}`;
  let number = 0;
  let record: PoolRecord = [];
  const prove = async (way: string, prover: ReturnType<typeof imageProver>) => {
    number += 1;
    const made = renderedConfig(configFiles(10, number), number);
    const rendered = { ...made, spec: { ...made.spec, osImageURL: baseImage } };
    const pushSpec = `${registry.host}/os/worker:${number}`;
    const input: AppendInput = {
      pool: 'worker',
      rendered,
      baseImage,
      pushSpec,
      ...inForce,
      froms: [],
      architecture,
      version: '0',
      created: '1970-01-01T00:00:00Z',
      baseRecords: [],
    };
    const { image } = await appendBuild(client, input, signal);
    const apiVersion = 'machineconfiguration.openshift.io/v1';
    const spec = {
      machineConfig: { name: rendered.metadata.name },
      machineOSConfig: { name: 'worker' },
      renderedImagePushSpec: pushSpec,
      policyDigest: inForce.policyDigest,
      baseImage,
    };
    const claim = {
      build: {
        apiVersion,
        kind: 'MachineOSBuild',
        metadata: { name: `b-${number}` },
        spec,
        status: { digestedImagePushSpec: image },
      },
      machineOSConfig: {
        apiVersion,
        kind: 'MachineOSConfig',
        metadata: { name: 'worker' },
        spec: { machineConfigPool: { name: 'worker' }, renderedImagePushSpec: pushSpec },
      },
      rendered,
      inForce,
      configs: () => undefined,
      record,
      isRollback: false,
      signingKeys: {},
    };
    const loop = monitorEventLoopDelay({ resolution: 1 });
    const [cpu, started] = [process.cpuUsage(), performance.now()];
    loop.enable();
    const proof = await prover(claim, signal);
    loop.disable();
    const took = performance.now() - started;
    const { user, system } = process.cpuUsage(cpu);
    if (proof.kind === 'refused') throw new Error(proof.why);
    const revision = {
      machineConfigPool: { name: 'worker' },
      revision: 1,
      machineConfig: spec.machineConfig,
    };
    const metadata = { name: 'r' };
    record = [
      {
        apiVersion: 'shale.dev/v1',
        kind: 'PoolRevision',
        metadata,
        spec: { ...revision, baseRecords: [...proof.baseRecords] },
      },
    ];
    rows.push({
      way,
      ms: Math.round(took),
      'CPU ms': Math.round((user + system) / 1_000),
      'longest block ms': Math.round(loop.max / 1e6),
      'RSS MB': Math.round(process.memoryUsage.rss() / 1e6),
    });
  };
  const prover = imageProver(options);
  await prove('first', prover);
  for (let repeat = 0; repeat < 3; repeat += 1) await prove('later', prover);
  await prove('new process', imageProver(options));
  // biome-ignore lint/suspicious/noConsole: a benchmark prints its table
  console.table(rows);
} finally {
  await registry.stop();
  await rm(dir, { recursive: true, force: true, maxRetries: 10 });
}
