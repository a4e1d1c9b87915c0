import { registryCAsDigest } from '../../../../api/node-certificates.ts';
import { createAuthority } from '../../../../x509/certificate.ts';
import { registryCAs } from '../../cluster-objects.ts';
import { readDisks } from '../roll-out.ts';
import type { TourStep } from '../step.ts';

const MIRROR = 'mirror.example.org';

/** A registry gets a CA of its own: it reaches the nodes past images and reboots. */
export const certificates: TourStep = {
  title: 'Certificates: the CA of one more registry',
  async run(tour) {
    const { view, record } = tour;
    const before = await readDisks(tour);
    const buildsBefore = view.builds.list().map(({ metadata }) => metadata.name);
    const { caPem } = createAuthority('mirror.example.org', new Date());
    const configMap = registryCAs({ [record.registryHost]: record.registryCA, [MIRROR]: caPem });
    await tour.apply([configMap]);
    const desired = registryCAsDigest(configMap.data ?? {});
    await tour.until(
      'every node has the CA',
      () => {
        const nodes = view.machineConfigNodes.list();
        const without = nodes.filter(({ status }) => status?.certificates?.registryCAs !== desired);
        if (without.length === 0) return { met: nodes };
        return { seen: `not yet: ${without.map(({ metadata }) => metadata.name).join(', ')}` };
      },
      view.machineConfigNodes.list().map(({ metadata }) => `shale-daemon-${metadata.name}`),
    );
    const after = await readDisks(tour);
    const files = await Promise.all(
      [...after.values()].map((disk) => disk.running(`/etc/containers/certs.d/${MIRROR}/shale-ca.crt`)),
    );
    tour.check(
      'the CA is where every node looks for it',
      files.every((file) => file?.trim() === caPem.trim()),
      files.map((file) => file?.length),
    );
    tour.check(
      'no node rebooted',
      [...after].every(([name, disk]) => disk.bootID === before.get(name)?.bootID),
    );
    const built = view.builds
      .list()
      .map(({ metadata }) => metadata.name)
      .filter((name) => !buildsBefore.includes(name));
    tour.check('no image was built for it', built.length === 0, built);
  },
};
