/** bootc itself reads Shale's images: the tree that its root would be made of. */
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DigestedPullspec } from '../../../api/references.ts';
import { createRegistryClient } from '../../../image/registry/registry-client.ts';
import { DIE_WITH_PARENT } from '../../../workshop/apiserver/control-plane/child-process.ts';
import { startDockerRegistry } from '../../../workshop/sandbox/docker-registry.ts';
import { pushImage } from '../../../workshop/sandbox/registry.ts';
import type { Listing } from '../../differential/listing.ts';
import { deadline, patience } from '../../fixtures/patience.ts';
import { imageConfig } from '../base-content/base-configs.ts';
import { differingFrom } from '../base-content/differing-from.ts';
import { withLinks } from '../base-content/linked-base.ts';
import { buildOnStock } from '../base-content/real-build.ts';
import { installFromRoot } from '../installing-root.ts';
import { FIRST_TIME_MS } from '../lab.ts';
import { PREPARED_ROOT } from '../prepared-root.ts';
import { bootcRecipe } from './bootc-recipe.ts';
import { parseDump } from './composefs-dump.ts';
import { givenSystem, noDebian } from './given-bootc.ts';

/**
 * What bootc has of an image without ostree, of the tree that its root is made of. $4: where it may write, $5: the
 * image.
 */
const READ = `mkdir root/repository
mount --bind "$4" root/repository
cfs() { chroot root bootc internals cfs -- --repo /repository/cfs "$@"; }
cfs init --insecure
cfs oci pull "docker://$5" it
cfs oci dump it > "$2/dump"`;

const title = 'bootc without ostree';

describe.skipIf(noDebian !== undefined)(
  noDebian === undefined ? title : `${title} (skipped: ${noDebian})`,
  { timeout: patience(600_000) },
  () => {
    const system = givenSystem((bootc) => withLinks(bootcRecipe(bootc)));
    let directory: string;
    let registry: Awaited<ReturnType<typeof startDockerRegistry>>;

    beforeAll(async () => {
      await system.archive();
      directory = await mkdtemp(path.join(PREPARED_ROOT.directory ?? '', 'shale-reader-'));
      registry = await startDockerRegistry({ dir: directory, launcher: DIE_WITH_PARENT });
    }, patience(FIRST_TIME_MS));
    afterAll(async () => {
      await registry?.stop();
      await rm(directory, { recursive: true, force: true });
    }, patience(60_000));

    const read = async (name: string, image: DigestedPullspec): Promise<Listing> => {
      const dir = path.join(directory, name);
      await mkdir(dir);
      const signal = deadline(FIRST_TIME_MS);
      await installFromRoot({ dir, image, archive: await system.archive(), signal }, READ, []);
      return parseDump(await readFile(path.join(dir, 'dump'), 'utf8'));
    };

    it('reads an image as what standard mode would write on its base', async () => {
      const client = createRegistryClient({ plainHttp: new Set([registry.host]) });
      const entries = system.entries?.(registry.host) ?? [];
      const onto = await system.archive();
      const place = { host: registry.host, client };
      const stock = await pushImage(place, 'os/lab', { entries, onto }, deadline(FIRST_TIME_MS));
      const rendered = imageConfig('rendered-one', 'one');
      const image = await buildOnStock({ stock, registry: client }, rendered);
      expect(differingFrom(rendered, await read('stock', stock), await read('image', image))).toBe('');
    });
  },
);
