"""Makers of the types in `aws_identity.yaml`."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from botocore.exceptions import ClientError

from tests.contract.aws_creators.cloud import REGION, RIGHTS, TAGS, TRUST, Cloud, Creator, Limits

_SAML = "<EntityDescriptor>" + "x" * 1000 + "</EntityDescriptor>"


def _owner(cloud: Cloud, kind: str) -> Any:
    """IAM, after a role, a user or a group called `holder` is there."""
    iam = cloud.client("iam")
    with suppress(ClientError):  # made for another type before
        if kind == "role":
            iam.create_role(RoleName="holder", AssumeRolePolicyDocument=TRUST)
        elif kind == "user":
            iam.create_user(UserName="holder")
        else:
            iam.create_group(GroupName="holder")
    return iam


def _policy(iam: Any, name: str) -> str:
    return str(iam.create_policy(PolicyName=name, PolicyDocument=RIGHTS)["Policy"]["Arn"])


def _user(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("iam").create_user(UserName="one", Path="/app/", Tags=TAGS)
    return "one", made["User"]["Arn"]


def _group(cloud: Cloud) -> tuple[str, str]:
    return "one", cloud.client("iam").create_group(GroupName="one")["Group"]["Arn"]


def _instance_profile(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("iam").create_instance_profile(InstanceProfileName="one", Tags=TAGS)
    return "one", made["InstanceProfile"]["Arn"]


def _role_policy(cloud: Cloud) -> tuple[str, str]:
    _owner(cloud, "role").put_role_policy(RoleName="holder", PolicyName="one", PolicyDocument=RIGHTS)
    return "holder:one", ""


def _role_attachment(cloud: Cloud) -> tuple[str, str]:
    iam = _owner(cloud, "role")
    arn = _policy(iam, "one-of-a-role")
    iam.attach_role_policy(RoleName="holder", PolicyArn=arn)
    return f"holder/{arn}", ""


def _user_policy(cloud: Cloud) -> tuple[str, str]:
    _owner(cloud, "user").put_user_policy(UserName="holder", PolicyName="one", PolicyDocument=RIGHTS)
    return "holder:one", ""


def _user_attachment(cloud: Cloud) -> tuple[str, str]:
    iam = _owner(cloud, "user")
    arn = _policy(iam, "one-of-a-user")
    iam.attach_user_policy(UserName="holder", PolicyArn=arn)
    return f"holder/{arn}", ""


def _group_policy(cloud: Cloud) -> tuple[str, str]:
    _owner(cloud, "group").put_group_policy(GroupName="holder", PolicyName="one", PolicyDocument=RIGHTS)
    return "holder:one", ""


def _group_attachment(cloud: Cloud) -> tuple[str, str]:
    iam = _owner(cloud, "group")
    arn = _policy(iam, "one-of-a-group")
    iam.attach_group_policy(GroupName="holder", PolicyArn=arn)
    return f"holder/{arn}", ""


def _access_key(cloud: Cloud) -> tuple[str, str]:
    return _owner(cloud, "user").create_access_key(UserName="holder")["AccessKey"]["AccessKeyId"], ""


def _oidc(cloud: Cloud) -> tuple[str, str]:
    arn = cloud.client("iam").create_open_id_connect_provider(
        Url="https://one.example.com/id", ThumbprintList=["0" * 40], ClientIDList=["x"], Tags=TAGS
    )["OpenIDConnectProviderArn"]
    return arn, arn


def _saml(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("iam").create_saml_provider(Name="one", SAMLMetadataDocument=_SAML, Tags=TAGS)
    return made["SAMLProviderArn"], made["SAMLProviderArn"]


def _server_certificate(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("iam").upload_server_certificate(
        ServerCertificateName="one", CertificateBody="x", PrivateKey="x", Tags=TAGS
    )
    return "one", made["ServerCertificateMetadata"]["Arn"]


def _alias(cloud: Cloud) -> tuple[str, str]:
    kms = cloud.client("kms")
    kms.create_alias(AliasName="alias/one", TargetKeyId=kms.create_key()["KeyMetadata"]["KeyId"])
    return "alias/one", f"arn:aws:kms:{REGION}:123456789012:alias/one"


def _certificate(cloud: Cloud) -> tuple[str, str]:
    arn = cloud.client("acm").request_certificate(
        DomainName="one.example.com", ValidationMethod="DNS", KeyAlgorithm="EC_prime256v1", Tags=TAGS
    )["CertificateArn"]
    return arn, arn


def _authority(cloud: Cloud) -> tuple[str, str]:
    arn = cloud.client("acm-pca").create_certificate_authority(
        CertificateAuthorityConfiguration={
            "KeyAlgorithm": "RSA_2048",
            "SigningAlgorithm": "SHA256WITHRSA",
            "Subject": {"CommonName": "one.example.com"},
        },
        CertificateAuthorityType="ROOT",
        Tags=TAGS,
    )["CertificateAuthorityArn"]
    return arn, arn


def _user_pool(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("cognito-idp").create_user_pool(PoolName="one", UserPoolTags={"team": "blue"})["UserPool"]
    return made["Id"], made["Arn"]


def _user_pool_client(cloud: Cloud) -> tuple[str, str]:
    cognito = cloud.client("cognito-idp")
    pool = cognito.create_user_pool(PoolName="holder")["UserPool"]["Id"]
    made = cognito.create_user_pool_client(UserPoolId=pool, ClientName="one")["UserPoolClient"]
    return f"{pool}/{made['ClientId']}", ""


def _identity_pool(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("cognito-identity").create_identity_pool(
        IdentityPoolName="one", AllowUnauthenticatedIdentities=False, IdentityPoolTags={"team": "blue"}
    )["IdentityPoolId"]
    return made, f"arn:aws:cognito-identity:{REGION}:123456789012:identitypool/{made}"


_METRICS = {"SampledRequestsEnabled": False, "CloudWatchMetricsEnabled": False, "MetricName": "one"}


def _web_acl(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("wafv2").create_web_acl(
        Name="one", Scope="REGIONAL", DefaultAction={"Allow": {}}, VisibilityConfig=_METRICS, Tags=TAGS
    )["Summary"]
    return f"{made['Id']}/one/REGIONAL", made["ARN"]


def _ip_set(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("wafv2").create_ip_set(
        Name="one", Scope="REGIONAL", IPAddressVersion="IPV4", Addresses=["10.0.0.0/8"], Tags=TAGS
    )["Summary"]
    return f"{made['Id']}/one/REGIONAL", made["ARN"]


def _rule_group(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("wafv2").create_rule_group(
        Name="one", Scope="REGIONAL", Capacity=10, VisibilityConfig=_METRICS, Tags=TAGS
    )["Summary"]
    return f"{made['Id']}/one/REGIONAL", made["ARN"]


def _trail(cloud: Cloud) -> tuple[str, str]:
    s3 = cloud.client("s3")
    s3.create_bucket(Bucket="one-trails", CreateBucketConfiguration={"LocationConstraint": REGION})
    arn = cloud.client("cloudtrail").create_trail(Name="one", S3BucketName="one-trails", TagsList=TAGS)["TrailARN"]
    return arn, arn


def _detector(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("guardduty").create_detector(Enable=True, Tags={"team": "blue"})["DetectorId"]
    return made, f"arn:aws:guardduty:{REGION}:123456789012:detector/{made}"


def _device_certificate(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("iot").create_keys_and_certificate(setAsActive=False)
    return made["certificateId"], made["certificateArn"]


CREATORS: dict[str, Creator] = {
    "aws_iam_user": _user,
    "aws_iam_group": _group,
    "aws_iam_instance_profile": _instance_profile,
    "aws_iam_role_policy": _role_policy,
    "aws_iam_role_policy_attachment": _role_attachment,
    "aws_iam_user_policy": _user_policy,
    "aws_iam_user_policy_attachment": _user_attachment,
    "aws_iam_group_policy": _group_policy,
    "aws_iam_group_policy_attachment": _group_attachment,
    "aws_iam_access_key": _access_key,
    "aws_iam_openid_connect_provider": _oidc,
    "aws_iam_saml_provider": _saml,
    "aws_iam_server_certificate": _server_certificate,
    "aws_kms_alias": _alias,
    "aws_acm_certificate": _certificate,
    "aws_iot_certificate": _device_certificate,
    "aws_acmpca_certificate_authority": _authority,
    "aws_cognito_user_pool": _user_pool,
    "aws_cognito_user_pool_client": _user_pool_client,
    "aws_cognito_identity_pool": _identity_pool,
    "aws_wafv2_web_acl": _web_acl,
    "aws_wafv2_ip_set": _ip_set,
    "aws_wafv2_rule_group": _rule_group,
    "aws_cloudtrail": _trail,
    "aws_guardduty_detector": _detector,
}

LIMITS: dict[str, Limits] = {
    "aws_iam_instance_profile": Limits(attributes={"role": "one with a role in it cannot be deleted"}),
    "aws_iam_saml_provider": Limits(tags="GetSAMLProvider is answered without tags"),
    "aws_iam_server_certificate": Limits(tags="ListServerCertificateTags is not there"),
    "aws_kms_alias": Limits(created="ListAliases is answered without CreationDate"),
}
