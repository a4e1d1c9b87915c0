import { z } from 'zod';
import type { BootImage, MachineConfigPool } from '../../api/machine-config-pool.ts';
import { bootImageTag, type MachineOSConfig } from '../../api/machine-os-config.ts';
import { digestInName } from '../../api/references.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { conditionOf } from '../../view/conditions.ts';

/** One way to put an image on a machine. */
const InstallWay = z.strictObject({
  /** `bootc-disk`, `bootc-filesystem`, `bootc-switch`, `rpm-ostree`, `ostree` or `coreos-installer`. */
  name: z.string(),
  where: z.string(),
  commands: z.array(z.string()).readonly(),
});

/** What a machine has to be installed from to become a node of a pool without an update, as `-o json` prints it. */
export const NodeImageOutput = z.union([
  /** New nodes boot the stock image. */
  z.strictObject({ pool: z.string(), image: z.null(), why: z.string() }),
  z.strictObject({
    pool: z.string(),
    /** By digest. */
    image: z.string(),
    digest: z.string(),
    proof: z.enum(['Rollout', 'Rollback', 'None']),
    /** The tag that stays the same, with why it doesn't name the image yet. */
    tag: z.string(),
    unpublished: z.string().optional(),
    ways: z.array(InstallWay).readonly(),
  }),
]);
export type NodeImage = z.infer<typeof NodeImageOutput>;

/**
 * Reads which image new nodes of a pool boot.
 *
 * @param config the pool's MachineOSConfig; undefined in standard mode.
 */
export function nodeImageOf(pool: MachineConfigPool, config: MachineOSConfig | undefined): NodeImage {
  const { name } = pool.metadata;
  const { bootImage } = pool.status ?? {};
  if (config === undefined)
    return { pool: name, image: null, why: 'the pool has no MachineOSConfig: it is in standard mode' };
  if (bootImage === undefined)
    return { pool: name, image: null, why: 'no rollout of the pool has proven an image yet' };
  const { image, proof } = bootImage;
  const tag = bootImageTag(config);
  const published = config.status?.publishedImage;
  const isPublished = published?.tag === tag && published.image === image;
  return {
    pool: name,
    image,
    digest: digestInName(image) ?? '',
    proof,
    tag,
    unpublished: isPublished ? undefined : unpublishedBecause(config, tag),
    ways: installWays(name, image),
  };
}

function unpublishedBecause({ status }: MachineOSConfig, tag: string): string {
  const condition = conditionOf(status?.conditions, 'BootImagePublished');
  const isAbout = condition !== undefined && !conditionIsTrue(status?.conditions, 'BootImagePublished');
  return isAbout ? condition.message : `the builder has not moved ${tag} to it yet`;
}

/** By digest: the signature of the image covers it, and a tag may move between two machines of one installation. */
function installWays(pool: string, image: string): readonly z.infer<typeof InstallWay>[] {
  const podman = [
    'podman run --rm --privileged --pid=host --security-opt label=type:unconfined_t',
    '-v /dev:/dev -v /var/lib/containers:/var/lib/containers',
  ].join(' ');
  return [
    {
      name: 'bootc-disk',
      where: 'from any Linux with podman, onto a whole disk, which is erased',
      commands: [`${podman} ${image} bootc install to-disk --target-imgref ${image} /dev/DISK`],
    },
    {
      name: 'bootc-filesystem',
      where: 'from any Linux with podman, onto file systems that are mounted at /mnt',
      commands: [`${podman} -v /mnt:/mnt ${image} bootc install to-filesystem --target-imgref ${image} /mnt`],
    },
    {
      name: 'bootc-switch',
      where: 'on a machine that bootc has installed, before it joins',
      commands: [`bootc switch ${image}`, 'systemctl reboot'],
    },
    {
      name: 'rpm-ostree',
      where: 'on a machine that rpm-ostree manages, before it joins',
      commands: [`rpm-ostree rebase --bypass-driver ostree-unverified-registry:${image}`, 'systemctl reboot'],
    },
    {
      name: 'ostree',
      where:
        'on a machine with rpm-ostree or bootc whose ostree has their container extension, before it joins',
      commands: [
        `ostree container image deploy --sysroot / --stateroot default --imgref ostree-unverified-registry:${image}`,
        'systemctl reboot',
      ],
    },
    {
      name: 'coreos-installer',
      where:
        'from a live CoreOS, onto a whole disk, which is erased: it boots CoreOS, and switches before it joins',
      commands: [
        `shale node ignition ${pool} > ${pool}.ign`,
        `coreos-installer install --ignition-file ${pool}.ign /dev/DISK`,
      ],
    },
  ];
}

const PROOFS: Readonly<Record<BootImage['proof'], string>> = {
  Rollout: 'proven by a rollout of the pool',
  Rollback: 'a rollback holds the pool at it',
  None: 'no node has run it yet, because the pool has none',
};

/** @returns what the command prints for people. */
export function formatNodeImage(node: NodeImage): string {
  if (node.image === null) return `pool ${node.pool}: new nodes boot the stock image, because ${node.why}`;
  const tag = node.unpublished === undefined ? node.tag : `${node.tag} (not yet: ${node.unpublished})`;
  return [
    `image   ${node.image}`,
    `tag     ${tag}`,
    `proof   ${PROOFS[node.proof]}`,
    ...node.ways.flatMap(({ where, commands }) => [
      '',
      `${where.charAt(0).toUpperCase()}${where.slice(1)}:`,
      ...commands.map((command) => `  ${command}`),
    ]),
  ].join('\n');
}
