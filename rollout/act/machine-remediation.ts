import type { Logger } from 'pino';
import { endedExemptionPatch, exemptionPatch } from '../../api/cluster-api.ts';
import type { Node } from '../../api/kubernetes.ts';
import { formatMachine, type MachineReference } from '../../api/machine-owner.ts';
import { OPERATOR_LEASE_HOLDER } from '../../api/names.ts';
import { type ApiClient, ApiError } from '../../cluster/api-client.ts';
import { retryOnConflict } from '../../cluster/update-object.ts';
import { type ClusterApiMachine, clusterApiMachineOf, findClusterApiMachine } from '../node-claims.ts';

interface RemediationParts {
  readonly client: ApiClient;
  readonly log: Logger;
}

/**
 * Keeps MachineHealthChecks of Cluster API from replacing a Machine while Shale drains or reboots its node, where
 * Machines are in the cluster of their nodes; those of OpenShift know no annotation of single Machines. An annotation
 * that somebody else set stays as it is, and so does what has the mark of another process of Shale.
 *
 * It needs a permission that not every installation has (manifests/components/machine-health-checks). Without it an
 * update goes on as before: a MachineHealthCheck then waits for its timeout only.
 */
export class MachineRemediation {
  readonly #parts: RemediationParts;
  #isForbiddenLogged = false;

  constructor(parts: RemediationParts) {
    this.#parts = parts;
  }

  /**
   * Exempts the Machine of a node. No update waits for it: a webhook of Cluster API that is down would stop them all.
   *
   * @throws when it is aborted.
   */
  async exempt(node: Node, signal: AbortSignal): Promise<void> {
    const reference = clusterApiMachineOf(node);
    if (reference === undefined) return;
    try {
      await this.#write(reference, signal, (machine) => exemptedPatch(machine, node));
    } catch (error) {
      signal.throwIfAborted();
      const { log } = this.#parts;
      log.warn(
        { machine: formatMachine(reference), err: error },
        'could not exempt a Machine from MachineHealthChecks',
      );
    }
  }

  /**
   * Gives a Machine back to MachineHealthChecks.
   *
   * @throws ApiError where it is not known to be given back, so that the caller tries again.
   */
  async endExemption(reference: MachineReference | undefined, signal: AbortSignal): Promise<void> {
    if (reference !== undefined) await this.#write(reference, signal, endedPatch);
  }

  /** @param patchOf annotations to set or take away; undefined: there is nothing to do. */
  async #write(
    reference: MachineReference,
    signal: AbortSignal,
    patchOf: (machine: ClusterApiMachine) => Annotations | undefined,
  ): Promise<void> {
    const { client } = this.#parts;
    const { namespace, name } = reference;
    try {
      await retryOnConflict(async () => {
        const found = await findClusterApiMachine(client, reference, signal);
        const patch = found && patchOf(found.machine);
        if (found === undefined || patch === undefined) return;
        const { resourceVersion } = found.machine.metadata;
        const body = { metadata: { resourceVersion, annotations: patch } };
        await client.patch(found.kind, name, { type: 'merge', body }, { namespace, signal });
      });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 403) this.#logForbidden(error);
      // It was deleted meanwhile.
      else if (error.status !== 404) throw error;
    }
  }

  /** Once for each process: it is so for every Machine. */
  #logForbidden(error: ApiError): void {
    if (this.#isForbiddenLogged) return;
    this.#isForbiddenLogged = true;
    this.#parts.log.warn(
      { err: error },
      'not allowed to exempt Machines from MachineHealthChecks while their nodes are updated: install manifests/components/machine-health-checks, or give them timeouts longer than a reboot',
    );
  }
}

type Annotations = Readonly<Record<string, string | null>>;

/** A Node names its Machine itself, so the Machine has to name it, too. */
function exemptedPatch(machine: ClusterApiMachine, { metadata, spec }: Node): Annotations | undefined {
  const isOfNode =
    machine.status?.nodeRef?.name === metadata.name && machine.spec?.providerID === spec?.providerID;
  const isLeaving = machine.metadata.deletionTimestamp !== undefined;
  return isOfNode && !isLeaving
    ? exemptionPatch(machine.metadata.annotations ?? {}, OPERATOR_LEASE_HOLDER)
    : undefined;
}

function endedPatch({ metadata }: ClusterApiMachine): Annotations | undefined {
  return endedExemptionPatch(metadata.annotations ?? {}, OPERATOR_LEASE_HOLDER);
}
