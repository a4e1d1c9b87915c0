import { setTimeout as delay } from 'node:timers/promises';
import { type Pod, Pods } from '../../../api/kubernetes.ts';
import { type ApiClient, ApiError } from '../../../cluster/api-client.ts';
import { type Finding, findings } from '../finding.ts';
import { type Probe, placeInWords, probePod } from './probe-pod.ts';
import { parseReport } from './report.ts';

/** ms for a pod to be placed, its image pulled and its work done. */
const DEADLINE_MS = 120_000;
const POLL_MS = 500;
/** ms to take it away, also after Ctrl-C. */
const DELETE_MS = 10_000;

/** Runs a probe's pod and takes it away again, whatever comes. @returns what it found, or why it found nothing. */
export async function runProbe(client: ApiClient, probe: Probe, signal: AbortSignal): Promise<Finding[]> {
  const { namespace, name, place } = probe;
  const { warning } = findings(`registries, from ${placeInWords(place)}`);
  try {
    await client.create(Pods, probePod(probe), { namespace, signal });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return [
      warning(
        `the probe pod can't be created: ${error.message}`,
        `you need permission to create and delete pods in ${namespace}`,
      ),
    ];
  }
  try {
    const ended = await untilEnded(client, probe, signal);
    const report = parseReport(messageOf(ended) ?? '');
    if (report !== undefined) return [...report];
    const why = ended === undefined ? 'was deleted' : stateInWords(ended);
    const mend = `check why the pod did not run: kubectl -n ${namespace} get events --field-selector involvedObject.name=${name}`;
    return [warning(`pod ${name} ${why} and reported no findings`, mend)];
  } finally {
    await client
      .delete(Pods, name, { namespace, gracePeriodSeconds: 0, signal: AbortSignal.timeout(DELETE_MS) })
      .catch((error: unknown) => {
        process.stderr.write(`warning: pod ${namespace}/${name} could not be deleted: ${String(error)}\n`);
      });
  }
}

/** @returns the pod as it was last seen; undefined when somebody deleted it. */
async function untilEnded(
  client: ApiClient,
  { namespace, name }: Probe,
  signal: AbortSignal,
): Promise<Pod | undefined> {
  const deadline = performance.now() + DEADLINE_MS;
  for (;;) {
    const pod = await client.find(Pods, name, { namespace, signal });
    const isOver = pod === undefined || ['Succeeded', 'Failed'].includes(pod.status?.phase ?? '');
    if (isOver || performance.now() >= deadline) return pod;
    await delay(POLL_MS, undefined, { signal });
  }
}

function messageOf(pod: Pod | undefined): string | undefined {
  return pod?.status?.containerStatuses?.[0]?.state?.terminated?.message;
}

function stateInWords({ status }: Pod): string {
  const { waiting, terminated } = status?.containerStatuses?.[0]?.state ?? {};
  if (terminated !== undefined) return `ended with exit code ${terminated.exitCode}`;
  const why = waiting?.reason ?? status?.reason;
  return `is ${status?.phase ?? 'Pending'}${why === undefined ? '' : ` (${why})`}`;
}
