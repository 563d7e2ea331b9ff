"""Organizations and projects in the metadata: they exist as soon as anything speaks of them.

Owns their numbers and names, and the one rule that a project never changes its organization.
Refuses to delete: evidence refers to them by number.
"""

from dataclasses import replace

from dataplane.errors import Refused
from dataplane.metadata import tables
from dataplane.metadata.state import Organization, Project, State


def check_owner(state: State, organization_id: str, project_id: str) -> None:
    """Raises Refused if the project is known to belong to another organization."""
    project = state.projects.get(project_id)
    if project is not None and project.organization_id != organization_id:
        raise Refused(
            "OBJECT_MOVED",
            f"project {project_id} belongs to {project.organization_id}, not to {organization_id}",
            hint="name the organization that owns the project",
        )


def put_organization(state: State, organization_id: str) -> None:
    """Give an organization its number, if it has none."""
    if organization_id not in state.organizations:
        number = state.counters.organization
        state.counters.organization += 1
        state.organizations[organization_id] = Organization(number, organization_id)


def put_project(state: State, organization_id: str, project_id: str, name: str) -> bytes:
    """Give a project its number and name. Returns the table row that says so, if the name is new.

    name: empty while only keys have spoken of it.
    """
    put_organization(state, organization_id)
    project = state.projects.get(project_id)
    if project is not None and project.name == name:
        return b""
    if project is None:
        number = state.counters.project
        state.counters.project += 1
        project = Project(number, project_id, organization_id, name)
    project = replace(project, name=name)
    state.projects[project_id] = project
    return tables.project_row(state, project) if name else b""
