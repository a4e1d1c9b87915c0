import type { Logger } from 'pino';
import { OPERATOR_DEPLOYMENT } from '../api/names.ts';
import { SigningKeySecret } from '../builder/attest/signing-key-secret.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { createEventRecorder } from '../cluster/events.ts';
import { systemClocks } from '../cluster/lease-expiry.ts';
import { followLogLevel } from '../cluster/log.ts';
import { Notifier, notifying } from '../cluster/notifications.ts';
import { endTogether } from '../cluster/process.ts';
import type { Tracing } from '../cluster/tracing/otlp.ts';
import { builderDeployment } from '../opt-in/builder-deployment.ts';
import { SigningKeys } from '../opt-in/signing-keys.ts';
import type { Signing } from '../opt-in/switch.ts';
import { createCaches } from '../rollout/caches.ts';
import { builderArguments } from './builder-flags.ts';
import { fleetLockOf, monitoringOf, type OperatorFlags, receiverOf, rolloutOptions } from './flags.ts';
import { leftImagePruner } from './left-images.ts';
import { startLayeringController, startRolloutControllers } from './loop.ts';
import type { OwnPod } from './preconditions.ts';
import { imageProver } from './proof/prove-image.ts';
import { registryPruner } from './registry.ts';
import type { OperatorTelemetry } from './status.ts';

/** What the operator's process has, whether it leads or not. */
export interface Leading {
  readonly client: ApiClient;
  readonly log: Logger;
  readonly own: OwnPod;
  readonly flags: OperatorFlags;
  readonly telemetry: OperatorTelemetry | undefined;
  readonly tracing: Tracing;
  /** Aborted when the operator leads no longer. */
  readonly signal: AbortSignal;
}

/**
 * Runs all controllers until the signal. They end together: where one can't continue, a new process
 * starts over.
 *
 * @throws what made a controller fail.
 */
export async function lead({ client, log, own, flags, telemetry, tracing, signal }: Leading): Promise<void> {
  const { namespace } = flags;
  const recorder = createEventRecorder(client, OPERATOR_DEPLOYMENT, log);
  const notifier = notifierOf(flags, log, telemetry);
  const events = notifier === undefined ? recorder : notifying(recorder, notifier);
  const options = rolloutOptions(flags);
  telemetry?.is('reading');
  const caches = createCaches(client, options, log);
  followLogLevel(caches.machineConfigurations, log, 'operatorLogLevel', flags.logLevel);
  const registry = { client, namespace, plainHttp: new Set(flags.insecureRegistry) };
  const shared = { client, caches, events, log };
  const rollout = (either: AbortSignal) =>
    startRolloutControllers({
      ...shared,
      options,
      tracer: tracing,
      signal: either,
      proveImage: imageProver({ ...registry, log }),
      onReady: () => telemetry?.is('leading'),
      monitoring: monitoringOf(flags),
      fleetLock: fleetLockOf(flags),
      telemetry,
    });
  const layering = (either: AbortSignal) =>
    startLayeringController({
      ...shared,
      signal: either,
      layering: {
        namespace,
        pruner: registryPruner(registry),
        leftImages: leftImagePruner(registry),
        signing: new SigningKeys({
          client,
          log,
          namespace,
          now: systemClocks.now,
          secret: new SigningKeySecret(client, { namespace, name: flags.signingKeySecret }),
        }),
        desiredBuilder: {
          required: builderOf(flags, 'required', own),
          disabled: builderOf(flags, 'disabled', own),
        },
        keepImages: flags.keepImages,
      },
    });
  await endTogether(
    [...(notifier === undefined ? [] : [(either: AbortSignal) => notifier.run(either)]), rollout, layering],
    signal,
  );
}

function builderOf(flags: OperatorFlags, signing: Signing, { image, imagePullSecrets, environment }: OwnPod) {
  return builderDeployment(flags.namespace, image, builderArguments(flags, signing, image), {
    imagePullSecrets,
    environment,
    pod: flags.builderPod,
    ...(flags.builderMetricsPort === 0 ? {} : { metricsPort: flags.builderMetricsPort }),
  });
}

/** @returns what sends events to a receiver; undefined without one. */
function notifierOf(
  flags: OperatorFlags,
  log: Logger,
  telemetry: OperatorTelemetry | undefined,
): Notifier | undefined {
  const url = receiverOf(flags);
  if (url === undefined) return undefined;
  return new Notifier({
    url,
    source: flags.notifySource,
    typePrefix: 'dev.shale.operator',
    log,
    onResult: (result) => telemetry?.metrics.countNotification(result),
    now: systemClocks.now,
  });
}
