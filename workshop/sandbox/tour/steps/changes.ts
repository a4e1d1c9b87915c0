import { MachineConfigs } from '../../../../api/machine-config.ts';
import { annotations } from '../../../../api/names.ts';
import { dataDigest } from '../../../../api/node-certificates.ts';
import { createAuthority } from '../../../../x509/certificate.ts';
import { registryCAs } from '../../cluster-objects.ts';
import {
  expectActions,
  expectNoDisturbance,
  expectNoReboot,
  expectOneAtATime,
  expectOneReboot,
  expectRunningText,
  servicesSince,
} from '../expect-nodes.ts';
import { buildOf, buildsOf, newConfig, readDisks, rollOut } from '../roll-out.ts';
import type { TourStep } from '../step.ts';

const FILE = '/etc/chrony.conf';
const TEXT = 'ntp3.example.org';
const ACTION = 'Restart(chronyd.service)';

/** A file whose policy says which service to restart: a new image, taken without a reboot. */
export const liveChange: TourStep = {
  title: 'A change without a reboot: chrony.conf, whose policy requires Restart(chronyd.service)',
  async run(tour) {
    const rolledOut = await rollOut(tour, {
      what: 'every node has the new chrony.conf',
      mode: 'Layered',
      act: () => tour.applyExamples('tour/chrony-v2.yaml'),
      missingInConfig: newConfig,
    });
    const rendered = await tour.client.get(MachineConfigs, buildOf(tour, 'worker').spec.machineConfig.name, {
      signal: tour.signal,
    });
    const foreseen = rendered.metadata.annotations?.[annotations.transitions];
    tour.check(
      'the rendered config predicted the actions before the build',
      foreseen?.includes(`3 nodes: ${ACTION}`) === true,
      foreseen,
    );
    const transitions = buildOf(tour, 'worker').status?.transitions?.map(({ actions }) => actions) ?? [];
    tour.check(`the image's label requires ${ACTION}`, transitions.includes(ACTION), transitions);
    expectActions(tour, rolledOut, ACTION);
    expectNoReboot(tour, rolledOut);
    expectNoDisturbance(tour, rolledOut);
    await expectRunningText(tour, rolledOut, FILE, TEXT);
    const staged = await Promise.all(rolledOut.nodes.map(({ after }) => after.next.read(FILE)));
    tour.check(
      'the deployment for the next boot of every node has it too',
      staged.every((content) => content?.includes(TEXT)),
      staged,
    );
    tour.check(
      'the deployment for the next boot is the new image',
      rolledOut.nodes.every(
        ({ after, object }) => after.next.image === object.status?.configImage?.currentImage,
      ),
      rolledOut.nodes.map(({ after }) => after.next.image),
    );
    const restarted = rolledOut.nodes.map((node) =>
      servicesSince(node).map(({ action, unit }) => `${action} ${unit}`),
    );
    tour.check(
      'chronyd was restarted once on every node, and nothing else',
      restarted.every((units) => units.join() === 'restart chronyd.service'),
      restarted,
    );
  },
};

/**
 * Back to a config that the nodes ran before: its image is labelled again with what they run now, and costs the same.
 */
export const revertChange: TourStep = {
  title: 'A revert without a reboot: the former chrony.conf',
  async run(tour) {
    const rolledOut = await rollOut(tour, {
      what: 'every node has the former chrony.conf again',
      mode: 'Layered',
      act: () => tour.applyExamples('20-worker-chrony.yaml'),
      missingInConfig: newConfig,
    });
    expectActions(tour, rolledOut, ACTION);
    expectNoReboot(tour, rolledOut);
    expectNoDisturbance(tour, rolledOut);
    const contents = await Promise.all(rolledOut.nodes.map(({ after }) => after.running(FILE)));
    tour.check(
      `${FILE} contains ${JSON.stringify(TEXT)} on no running node`,
      contents.every((content) => content?.includes(TEXT) === false),
      contents,
    );
    const built = buildsOf(tour, 'worker').map(({ status }) => status?.builder?.imageBuilderType);
    tour.check('the image of that config was only labelled again', built.includes('Relabel'), built);
  },
};

const ARGUMENT = 'transparent_hugepage=madvise';

/** Only a boot changes the kernel's command line: cordon, drain, reboot, one node at a time. */
export const rebootChange: TourStep = {
  title: 'A change that requires a reboot: a kernel argument',
  async run(tour) {
    const rolledOut = await rollOut(tour, {
      what: 'every node booted with the new kernel argument',
      mode: 'Layered',
      act: () => tour.applyExamples('tour/karg.yaml'),
      missingInConfig: newConfig,
    });
    const transitions = buildOf(tour, 'worker').status?.transitions?.map(({ actions }) => actions) ?? [];
    tour.check("the image's label requires Reboot", transitions.includes('Reboot'), transitions);
    expectActions(tour, rolledOut, 'Reboot');
    expectOneReboot(tour, rolledOut);
    expectOneAtATime(tour, rolledOut);
    tour.check(
      'every node booted with the argument',
      rolledOut.nodes.every(({ after }) => after.booted.kernelArguments.includes(ARGUMENT)),
      rolledOut.nodes.map(({ after }) => after.booted.kernelArguments),
    );
  },
};

/** A file that no policy names, with one that a policy does: a reboot does the work of both. */
export const mixedChange: TourStep = {
  title: 'A mixed change: chrony.conf and a file that no policy covers',
  async run(tour) {
    const rolledOut = await rollOut(tour, {
      what: 'every node booted with both files',
      mode: 'Layered',
      act: () => tour.applyExamples('tour/mixed.yaml'),
      missingInConfig: newConfig,
    });
    expectActions(tour, rolledOut, 'Reboot');
    expectOneReboot(tour, rolledOut);
    const restarted = rolledOut.nodes.flatMap(servicesSince);
    tour.check('no service was restarted before the reboot', restarted.length === 0, restarted);
    expectOneAtATime(tour, rolledOut);
    await expectRunningText(tour, rolledOut, '/etc/profile.d/idle-timeout.sh', 'TMOUT=600');
    await expectRunningText(tour, rolledOut, '/etc/chrony.conf', 'without the retired one');
  },
};

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
    const desired = dataDigest(configMap.data ?? {});
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
