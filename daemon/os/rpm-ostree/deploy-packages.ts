import type { DigestedPullspec } from '../../../api/references.ts';
import { noPackages } from '../../../machineconfig/os-packages.ts';
import type { DeployPackagesOptions } from '../image-tool/image-tool.ts';
import { OsCommandError, type RunOsCommand } from '../os-command.ts';
import { packageTransaction } from './package-transaction.ts';
import { imageReference } from './rebase.ts';
import { rpmOstreeDeployments, rpmOstreeStatus } from './status.ts';
import { transaction, transactionFailure } from './transaction.ts';

/** A whole operating system and its packages over a slow line. */
const TIMEOUT_MS = 3_600_000;
/** Three lead anywhere; the rest is for a daemon that was restarted below one. */
const MOST_TRANSACTIONS = 6;

/** rpm-ostree has done what it was asked to, and is not where it then should be. */
export class PackagesNotDeployedError extends Error {
  override readonly name = 'PackagesNotDeployedError';
}

/**
 * Has rpm-ostree prepare a deployment of an image with these packages, transaction by transaction, each from what there is
 * by then: one whose daemon went away may have been done or not.
 *
 * @throws OsCommandError, ToolStatusError, PackagesNotDeployedError.
 */
export async function rpmOstreeDeployPackages(
  run: RunOsCommand,
  image: DigestedPullspec,
  { packages, former, mustBeSigned, signal }: DeployPackagesOptions,
): Promise<void> {
  const reference = imageReference(image, mustBeSigned);
  for (let left = MOST_TRANSACTIONS; left > 0; left -= 1) {
    const [first] = rpmOstreeDeployments(await rpmOstreeStatus(run, signal)).values();
    const present = { image: first?.image, packages: first?.packages ?? noPackages };
    const next = packageTransaction(present, { image, reference, packages, former });
    if (next === undefined) return;
    const options = { timeoutMs: TIMEOUT_MS, signal, isRepeatable: false };
    await transaction(run, next, options).catch((error: unknown) => {
      if (!(error instanceof OsCommandError) || transactionFailure(error.stderr) !== 'daemonGone')
        throw error;
    });
  }
  throw new PackagesNotDeployedError(
    `rpm-ostree: after ${MOST_TRANSACTIONS} transactions there is no deployment of ${image} with the packages that it should have`,
  );
}
