"""The first run: everything a fresh installation needs to be useful, in one transaction.

Organizations `_system` (the cluster's own topics) and `default`, a project and a stream `default`,
the cluster and its first node, the price book `demo-1`, and an owner key. That key is the
operator's: it belongs to `default` and may also create organizations, clusters and report runs.
Its token is returned once and is nowhere in the database.
"""

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from api.api_keys.schemas import ApiKeyCreate, ApiKeySpec
from api.api_keys.service import create_key
from api.auth.audit_chain import Actor
from api.auth.permissions import Caller
from api.auth.scope import of_organization
from api.auth.tokens import Token
from api.clusters.schemas import ClusterCreate
from api.clusters.service import create_cluster
from api.db.database import Database, Meta
from api.db.identifiers import new_id
from api.db.tables.api_keys import ApiKey
from api.db.tables.clusters import Cluster
from api.db.tables.nodes import Node
from api.db.tables.organizations import Organization
from api.db.tables.projects import Project
from api.db.tables.usage import Price, PriceBook
from api.nodes.schemas import NodeCreate, NodeSpec
from api.nodes.service import move_node, register_node
from api.organizations.schemas import OrganizationCreate
from api.organizations.service import new_organization
from api.projects.schemas import ProjectCreate
from api.projects.service import create_project_row
from api.streams.schemas import StreamCreate
from api.streams.service import create_stream_row

SYSTEM_ORGANIZATION: Final = "_system"
# Of PostgreSQL: two first runs at once are one and a second one.
ADVISORY_LOCK: Final = 7_310_579_265
DEMO_BOOK: Final = "demo-1"
DEMO_EFFECTIVE_FROM: Final = datetime(2020, 1, 1, tzinfo=UTC)
DEMO_PRICES: Final = (
    ("ingress_bytes", "GiB", 1 << 30, "0.05"),
    ("partition_seconds", "partition-hour", 3600, "0.002"),
    ("egress_bytes", "GiB", 1 << 30, "0"),
    ("requests", "million requests", 1_000_000, "0"),
    ("stored_byte_seconds", "GiB-hour", 3600 << 30, "0"),
    ("records", "record", 1, "0"),
)


@dataclass(frozen=True, slots=True)
class Identity:
    """The ids that the control plane and its first node must agree on."""

    cluster_id: str
    node_id: str
    system_organization_id: str
    system_project_id: str

    def members(self) -> dict[str, str]:
        """As the node's configuration names them."""
        return {
            "cluster_id": self.cluster_id,
            "node_id": self.node_id,
            "system_organization_id": self.system_organization_id,
            "system_project_id": self.system_project_id,
        }


@dataclass(frozen=True, slots=True)
class Bootstrapped:
    """What the first run made. ``token`` is the owner's, to be shown once."""

    identity: Identity
    owner_key_id: str
    token: Token


def bootstrap(database: Database, *, node_address: str) -> Bootstrapped | None:
    """Fills an empty database; answers None, and changes nothing, if it is filled already."""
    with database.write() as session:
        if not database.is_sqlite:
            session.execute(select(func.pg_advisory_xact_lock(ADVISORY_LOCK)))
        if session.get(Meta, "db_epoch") is not None:
            return None
        actor = Actor(
            Caller("bootstrap", "", role="owner", operator=True), "bootstrap", database.now(session)
        )
        session.add_all(
            [
                Meta(key="db_epoch", value="1"),
                Meta(key="db_instance", value=secrets.token_hex(16)),
                Meta(key="page_token_key", value=secrets.token_hex(32)),
            ]
        )
        system_organization, system_project = _system(session, actor)
        default = new_organization(session, actor, OrganizationCreate(name="default"))
        owner = Actor(
            Caller("bootstrap", default.id, role="owner", operator=True), "bootstrap", actor.now
        )
        cluster = create_cluster(session, owner, ClusterCreate(name="local"))
        node = register_node(
            session,
            owner,
            cluster_id=cluster.id,
            command=NodeCreate(id=new_id("nd"), name="node-1", spec=NodeSpec(address=node_address)),
        )
        project = create_project_row(session, owner, default.id, ProjectCreate(name="default"))
        create_stream_row(
            session, owner, StreamCreate(name="default"), project=project, cluster_id=cluster.id
        )
        _price_book(session)
        issued = create_key(
            session,
            owner,
            ApiKeyCreate(name="owner", spec=ApiKeySpec(role="owner", expires_at="never")),
            operator=True,
        )
        assert issued.token is not None
        return Bootstrapped(
            Identity(cluster.id, node.id, system_organization, system_project),
            issued.body.id,
            issued.token,
        )


def identity_of(database: Database) -> Identity:
    """What the first run made, of a database that is filled."""
    with database.read() as session:
        system = session.scalars(
            select(Organization).where(Organization.name == SYSTEM_ORGANIZATION)
        ).one()
        cluster = session.scalars(select(Cluster).order_by(Cluster.id).limit(1)).one()
        node = session.scalars(select(Node).where(Node.cluster_id == cluster.id)).first()
        assert node is not None
        project = session.scalars(of_organization(select(Project), Project, system.id)).one()
        return Identity(cluster.id, node.id, system.id, project.id)


def another_owner_key(database: Database) -> str:
    """The token of one more operator key: the first one's was lost, or is one no more."""
    with database.write() as session:
        query = select(Organization).where(Organization.name == "default")
        organization = session.scalars(query).one()
        caller = Caller("bootstrap", organization.id, role="owner", operator=True)
        count = len(session.scalars(select(ApiKey.id).where(ApiKey.operator)).all())
        issued = create_key(
            session,
            Actor(caller, "bootstrap", database.now(session)),
            ApiKeyCreate(
                name=f"owner-{count + 1}", spec=ApiKeySpec(role="owner", expires_at="never")
            ),
            operator=True,
        )
        assert issued.token is not None
        return issued.token.text


def readdress(database: Database, *, node_id: str, node_address: str) -> None:
    """The first node listens elsewhere than at the last start."""
    with database.write() as session:
        caller = Caller("bootstrap", "", role="owner", operator=True)
        actor = Actor(caller, "bootstrap", database.now(session))
        move_node(session, actor, node_id=node_id, address=node_address)


def _system(session: Session, actor: Actor) -> tuple[str, str]:
    """The organization and project of the cluster's own topics; their names are reserved, so the
    checks of ordinary names are passed by on purpose."""
    command = OrganizationCreate.model_construct(
        name=SYSTEM_ORGANIZATION, display_name="System", labels={}, annotations={}
    )
    organization: Organization = new_organization(session, actor, command, system=True)
    project = create_project_row(
        session,
        actor,
        organization.id,
        ProjectCreate.model_construct(
            name=SYSTEM_ORGANIZATION, display_name="System", labels={}, annotations={}
        ),
    )
    return organization.id, project.id


def _price_book(session: Session) -> None:
    session.add(
        PriceBook(
            version=DEMO_BOOK,
            currency="EUR",
            effective_from=DEMO_EFFECTIVE_FROM,
            monthly_minimum="5.00",
        )
    )
    session.flush()
    session.add_all(
        Price(version=DEMO_BOOK, meter=meter, unit=unit, unit_quantity=quantity, unit_price=price)
        for meter, unit, quantity, price in DEMO_PRICES
    )
