import type { Logger } from 'pino';
import { errorMessage } from '../../api/error-message.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import {
  bootImageTag,
  type MachineOSConfig,
  type MachineOSConfigConditionType,
  MachineOSConfigs,
} from '../../api/machine-os-config.ts';
import { type Condition, LONGEST_MESSAGE } from '../../api/object.ts';
import { present } from '../../api/present.ts';
import { repositoryOf } from '../../api/references.ts';
import type { EventRecorder } from '../../cluster/events.ts';
import { setCondition, updateStatus } from '../../cluster/update-object.ts';
import { parseReference } from '../../image/reference.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { TagTaken } from '../../image/registry/registry-error.ts';
import { type RegistryAccessOptions, readRegistryAccess } from '../secrets.ts';

export interface BootImagePublisherOptions extends RegistryAccessOptions {
  readonly events: EventRecorder;
  readonly log: Logger;
  readonly now: () => Date;
  readonly signal: AbortSignal;
}

/** What is to be done about the tag for a pool's new nodes. */
export type BootImagePublication =
  | { readonly kind: 'none' }
  /** The image is in another repository than the next images of the pool, and its signature with it. */
  | { readonly kind: 'elsewhere'; readonly tag: string; readonly image: string }
  | { readonly kind: 'move'; readonly tag: string; readonly image: string };

/**
 * Decides whether to move the tag. Which image it names is the operator's choice: the builder reads it from the status
 * of the pool, which it can't write.
 *
 * @param moved what this process moved the tag to. Another process may have ended between the registry and the status,
 *   and the registry may have lost what it had, so each process moves every tag once.
 */
export function decidePublication(
  config: MachineOSConfig,
  pool: Pick<MachineConfigPool, 'status'> | undefined,
  moved: { readonly tag: string; readonly image: string } | undefined,
): BootImagePublication {
  const image = pool?.status?.bootImage?.image;
  if (image === undefined) return { kind: 'none' };
  const tag = bootImageTag(config);
  if (repositoryOf(image) !== repositoryOf(tag)) return { kind: 'elsewhere', tag, image };
  const said = config.status?.publishedImage;
  const isDone = [moved, said].every((each) => each?.tag === tag && each.image === image);
  return isDone ? { kind: 'none' } : { kind: 'move', tag, image };
}

/**
 * Moves the tag for new nodes of a pool. The signature of the image holds under the tag too, because it is found by the
 * digest of the image and names the repository.
 */
export class BootImagePublisher {
  readonly #options: BootImagePublisherOptions;
  readonly #moved = new Map<string, { readonly tag: string; readonly image: string }>();

  constructor(options: BootImagePublisherOptions) {
    this.#options = options;
  }

  /**
   * Moves the tag if the operator has chosen another image, and reports it on the MachineOSConfig.
   *
   * @returns the error of the registry or its Secret, which is reported already; the caller tries again later.
   * @throws ApiError
   */
  async publish(
    config: MachineOSConfig,
    pool: MachineConfigPool | undefined,
  ): Promise<{ readonly error: unknown } | undefined> {
    const { events, log, signal } = this.#options;
    const { name } = config.metadata;
    const publication = decidePublication(config, pool, this.#moved.get(name));
    switch (publication.kind) {
      case 'none':
        return undefined;
      case 'elsewhere': {
        const message = `${publication.image} is in another repository, so ${publication.tag} is not moved until an image of this repository is proven`;
        await this.#report(config, { status: 'False', reason: 'OtherRepository', message }, undefined);
        return undefined;
      }
      case 'move': {
        const { tag, image } = publication;
        try {
          await this.#move(config, { tag, image });
        } catch (error) {
          signal.throwIfAborted();
          const why = errorMessage(error);
          const instead =
            error instanceof TagTaken
              ? '; exempt this tag from immutability, or have new nodes boot the image by its digest'
              : '';
          const message = `${tag} could not be moved to ${image}: ${why}${instead}`;
          events.warning(config, 'BootImageNotPublished', message);
          await this.#report(config, { status: 'False', reason: 'PublishFailed', message }, undefined);
          return { error };
        }
        const message = `New nodes boot ${image} as ${tag}`;
        log.info({ pool: name, image, tag }, 'image for new nodes is published');
        const before = config.status?.publishedImage;
        if (before?.image !== image || before.tag !== tag)
          events.normal(config, 'BootImagePublished', message);
        await this.#report(config, { status: 'True', reason: 'Published', message }, { tag, image });
        this.#moved.set(name, { tag, image });
        return undefined;
      }
    }
  }

  /** The same bytes under another name: the digest stays, and nothing is signed again. */
  async #move(config: MachineOSConfig, { tag, image }: { readonly tag: string; readonly image: string }) {
    const { signal } = this.#options;
    const { machineConfigPool, renderedImagePushSecret } = config.spec;
    const secrets = { pool: machineConfigPool.name, names: [renderedImagePushSecret?.name] };
    const client = createRegistryClient(await readRegistryAccess(this.#options, secrets, signal));
    const manifest = await client.getManifest(parseReference(image), signal);
    await client.putManifest(parseReference(tag), manifest, signal);
  }

  async #report(
    config: MachineOSConfig,
    verdict: Pick<Condition, 'status' | 'reason' | 'message'>,
    publishedImage: NonNullable<MachineOSConfig['status']>['publishedImage'],
  ): Promise<void> {
    const { client, now, signal } = this.#options;
    const type: MachineOSConfigConditionType = 'BootImagePublished';
    const about = { observedGeneration: config.metadata.generation };
    await updateStatus(
      client,
      MachineOSConfigs,
      config,
      ({ status }) => ({
        ...status,
        ...present({ publishedImage: publishedImage ?? status?.publishedImage }),
        conditions: setCondition(
          status?.conditions ?? [],
          { type, ...verdict, message: verdict.message.slice(0, LONGEST_MESSAGE), ...about },
          now(),
        ),
      }),
      { signal },
    );
  }
}
